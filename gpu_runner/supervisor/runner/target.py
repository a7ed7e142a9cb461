"""What a runner process runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.verdict import Abi, Direction


@dataclass(frozen=True)
class Target:
    """What a runner process runs: a submission's library, or the reference as a baseline."""

    abi: Abi
    direction: Direction
    library: Path | None = None  # a submission's
    symbol: str = ""  # c ABI
    shim: Path | None = None  # c ABI
    runner: Path | None = None  # c ABI
    baseline: str = ""  # "eager", "compiled", or "empty", which does nothing
    is_module: bool = False  # the library is what was prepared of a Python module
    keeping: int | None = None  # of a rehearsal: the file that takes what its calls compile

    @property
    def python(self) -> bool:
        """Whether the runner is the torch runner rather than the C++ one."""
        return self.abi is Abi.TORCH or bool(self.baseline)

"""What a runner process runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.supervisor.build.workshop import Workshop
from gpu_runner.supervisor.runner.mapped import Witness


@dataclass(frozen=True)
class Target:
    """What a runner process runs: a submission's library, or the reference as a baseline."""

    abi: Abi
    direction: Direction
    library: Path | None = None  # a submission's
    symbol: str = ""  # c ABI
    shim: Path | None = None  # c ABI
    runner: Path | None = None  # c ABI
    baseline: str = ""  # "eager", "compiled", a library's name, or "empty", which does nothing
    source: str = ""  # of a Python module, as its processes get it; the library is its archive
    witness: Witness = field(default_factory=Witness, compare=False)
    rehearsing: tuple[int, Workshop] | None = None
    """Of a rehearsal: the file that takes what its calls compile, and who compiles for it."""

    @property
    def is_module(self) -> bool:
        """Whether a Python module is run."""
        return bool(self.source)

    @property
    def workshop(self) -> Workshop:
        """Who compiles for it in a rehearsal."""
        assert self.rehearsing is not None
        return self.rehearsing[1]

    @property
    def is_watched(self) -> bool:
        """Whether it counts what a process of it maps: not of ours, nor while it compiles."""
        return self.library is not None and self.rehearsing is None

    @property
    def python(self) -> bool:
        """Whether the runner is the torch runner rather than the C++ one."""
        return self.abi is Abi.TORCH or bool(self.baseline)


@dataclass(frozen=True)
class Targets:
    """What is run on listed workloads, and on hidden ones: asked for once they come."""

    public: Target
    hidden: Callable[[], Target]

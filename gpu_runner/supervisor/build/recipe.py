"""How a source is compiled: its files, the command, and what comes of it."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host.config import SupervisorConfig

_ERROR = re.compile(r"\berror\s*:|\bfatal\s*:|required symbol|undefined reference")
_REPORT_VERSION = "5"  # of what is kept beside a library; part of the cache's key


@dataclass(frozen=True)
class Recipe:
    """One compilation: the files to place beside each other, and which of them to compile."""

    files: Mapping[str, str]  # name, or path from where the compiler runs -> text
    source: str  # name among `files`
    kind: DeviceKind
    flags: tuple[str, ...]
    paths: tuple[Path, ...] = ()  # folders that the compiler must be able to read
    is_read: bool = False  # whether what its preprocessor makes of the source is kept: `passes`
    environment: Mapping[str, str] = field(default_factory=dict)  # of the compiler
    own: tuple[str, ...] = ()  # names of a submission's files, the entry first, if it has several
    wanted: Callable[[], bool] = field(default=lambda: True, compare=False)
    """Whether somebody still waits for the result; if not, the compiler is ended."""

    @property
    def result(self) -> str:
        """Name of the file that it makes."""
        return "library.so"

    @property
    def step(self) -> str:
        """What is done, in words."""
        return "the compiler"

    @property
    def runs_source(self) -> bool:
        """Whether its author's code runs meanwhile, which may end itself as it likes."""
        return False

    @property
    def compiler(self) -> str:
        """What compiles, with its version."""
        return toolchain.compiler(self.kind).version

    def command(self) -> list[str]:
        """The compiler's command line, run where the files are."""
        compiler = toolchain.compiler(self.kind)
        return [compiler.path, self.source, *self.flags, "-o", self.result]

    def passes(self) -> tuple[str, ...]:
        """Files that hold the source after its macros: for the host, and for a GPU."""
        if not self.is_read:
            return ()
        stem = Path(self.source).stem
        on_gpu = self.kind is DeviceKind.CUDA
        return (f"{stem}.cpp4.ii", f"{stem}.cpp1.ii") if on_gpu else (f"{stem}.ii",)

    def script(self) -> str:
        """The same command line with what makes `passes`, for a shell.

        nvcc keeps files that it makes anyway; g++ runs a second time, beside the compilation.
        """
        command = shlex.join(self.command())
        if self.kind is DeviceKind.CUDA:  # names of kernels are for people
            return f"({command}{' --keep' * self.is_read}) 2>&1 | c++filt"
        if not self.is_read:
            return command
        preprocess = [self.command()[0], "-E", self.source, *self.flags, "-o", *self.passes()]
        return f"{{ {shlex.join(preprocess)} >/dev/null 2>&1 & }}; {command} && {{ wait; true; }}"

    def key(self) -> str:
        """Content address: everything that the result depends on."""
        versions = [toolchain.compiler(kind).version for kind in (self.kind, DeviceKind.CPU)]
        parts = [_REPORT_VERSION, *versions, toolchain.machine(), *self.command()]
        parts += [text for item in sorted(self.files.items()) for text in item]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Built:
    """A report, and the library that it is about (None unless the report says ok).

    crash: the signal that the compiler died of by itself, in words. in_doubt: whether that, or its
    being stopped, may have been somebody else's doing. expected: the declaration that the source
    does not fit, if that is why.
    """

    report: BuildReport
    library: Path | None
    timed_out: bool = False
    memory_exceeded: bool = False
    memory_limit: str = ""  # in words
    crash: str = ""
    in_doubt: bool = False
    step: str = "the compiler"
    expected: str = ""

    def why_not(self, config: SupervisorConfig) -> str:
        """Why there is no library, in a sentence."""
        if self.timed_out:
            return f"{self.step} took longer than {config.build_timeout_s:g} s"
        if self.memory_exceeded:
            return f"{self.step} used more memory than allowed (limit {self.memory_limit})"
        found = filter(_ERROR.search, self.report.log.splitlines())
        how = f"crashed ({self.crash})" if self.crash else "failed without a message"
        reason = next(found, f"{self.step} {how}")[:500]
        return f"{reason}; the task expects: {self.expected}" if self.expected else reason

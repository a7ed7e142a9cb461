"""How a source is compiled: its files, the command, and the address of what comes of it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import toolchain

_REPORT_VERSION = "4"  # of what is kept beside a library; part of the cache's key


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

    @property
    def result(self) -> str:
        """Name of the file that it makes."""
        return "library.so"

    @property
    def step(self) -> str:
        """What is done, in words."""
        return "the compiler"

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

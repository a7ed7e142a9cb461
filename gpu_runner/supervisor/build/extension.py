"""Compiles an extension that a Python module asks for, as torch would, outside of its process."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpu_runner.data.extension import Extension
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host.config import SupervisorConfig

_CUDA = (".cu", ".cuh")


@dataclass(frozen=True)
class ExtensionRecipe(Recipe):
    """The compilation of an extension's sources beside each other, and their linking."""

    sources: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    asked: str = field(default="", compare=False)  # key of the extension, whatever its name is

    def steps(self) -> Iterator[list[str]]:
        """The command that compiles each source.

        nvcc's commands come first. It writes its own process id into its output, and that id is the
        same each time only if nothing else has been started in the jail before.
        """
        order = sorted(enumerate(self.sources), key=lambda each: not each[1].endswith(_CUDA))
        for index, source in order:
            on_gpu = self.kind is DeviceKind.CUDA and source.endswith(_CUDA)
            compiler = toolchain.compiler(self.kind if on_gpu else DeviceKind.CPU)
            flags = self.cuda_flags if on_gpu else self.flags
            yield [compiler.path, *flags, "-c", source, "-o", f"{index}.o"]

    def command(self) -> list[str]:
        """The command that links what was compiled."""
        objects = [f"{index}.o" for index in range(len(self.sources))]
        linker = toolchain.compiler(DeviceKind.CPU).path
        return [linker, *objects, "-shared", *self.link_flags, "-o", self.result]

    def script(self) -> str:
        """See `Recipe.script`; sources are compiled side by side."""
        begun = "".join(f"{shlex.join(step)} & p{i}=$!; " for i, step in enumerate(self.steps()))
        waits = " && ".join(f"wait $p{index}" for index in range(len(self.sources)))
        return f"{{ {begun}}} && {waits} && {shlex.join(self.command())}"

    def key(self) -> str:
        """See `Recipe.key`: a name that is drawn at random is no part of it."""
        versions = [toolchain.compiler(kind).version for kind in {self.kind, DeviceKind.CPU}]
        parts = [self.asked, *sorted(versions), toolchain.machine(), toolchain.torch_version()]
        parts += [part for item in sorted(self.environment.items()) for part in item]
        if self.environment:
            parts += toolchain.torch_headers().values()
        return hashlib.sha256("\0".join(("extension 1", *parts)).encode()).hexdigest()


def extension_recipes(
    asked: Extension, config: SupervisorConfig
) -> tuple[ExtensionRecipe, ExtensionRecipe]:
    """With few of torch's headers first, and with torch's own where those do not do."""
    cutlass = toolchain.cutlass_paths() if config.kind is DeviceKind.CUDA else ()
    slim = {"CPATH": str(toolchain.TORCH_HEADERS)}  # searched before -isystem
    first, second = (
        ExtensionRecipe(
            asked.files,
            asked.sources[0],
            config.kind,
            asked.flags,
            (*toolchain.torch_paths(), Path(toolchain.TORCH_HEADERS), *cutlass),
            environment=environment,
            sources=asked.sources,
            cuda_flags=asked.cuda_flags,
            link_flags=asked.link_flags,
            asked=asked.key(),
        )
        for environment in (slim, {})
    )
    return first, second

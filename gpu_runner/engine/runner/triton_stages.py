"""Triton's stages that need neither a device nor the module's own code run in the workshop.

So the process that asks for them can be stopped while they run: others use the device meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Protocol

from gpu_runner.data import asking
from gpu_runner.engine.runner.asking import Asking, WorkshopGone

_FIRST = "ttir"  # the last stage of Triton's whose result is text that Triton reads again


class GpuTarget(Protocol):
    """What Triton compiles for."""

    backend: str
    arch: int
    warp_size: int


class Backend(Protocol):
    """A part of Triton's compiler."""

    target: GpuTarget


Noted = dict[str, object]
Stage = Callable[[object, Noted], object]


class TritonStages:
    """Asks the workshop; what it can't do is done here, with whatever Triton says about it."""

    def __init__(self, workshop: Asking) -> None:
        self._workshop = workshop

    def take_over(self) -> None:
        """From now on, Triton's compiler for CUDA asks. Without Triton, nothing happens."""
        try:
            from triton import knobs
            from triton._C.libtriton import get_cache_invalidating_env_vars as settings
            from triton.backends.nvidia.compiler import CUDABackend
        except ImportError:
            return
        add, before = CUDABackend.add_stages, settings()

        def added(
            backend: Backend, stages: dict[str, Stage], options: object, *language: Enum
        ) -> None:
            add(backend, stages, options, *language)
            hooked = getattr(knobs.runtime, "add_stages_inspection_hook", None) is not None
            usual = all(each.name == "TRITON" for each in language)
            if usual and not hooked and _FIRST in stages and settings() == before:
                later = list(stages)[list(stages).index(_FIRST) + 1 :]
                stages.update(self._asking(backend.target, options, stages, later))

        CUDABackend.add_stages = added

    def _asking(
        self,
        target: GpuTarget,
        options: object,
        stages: dict[str, Stage],
        names: Sequence[str],
    ) -> dict[str, Stage]:
        """The stages of these names, of which the first asks for all."""
        made: Noted = {}
        own = {name: stages[name] for name in names}

        def stage(name: str, before: str) -> Stage:
            def run(module: object, metadata: Noted) -> object:
                if name == names[0]:
                    stages, noted = self._made(target, options, str(module))
                    made.update(stages)
                    metadata.update(noted)
                elif module is not made.get(before):  # the kernel has another one put there
                    made.clear()
                return made[name] if name in made else own[name](module, metadata)

            return run

        return {name: stage(name, before) for before, name in pairwise(["", *names])}

    def _made(self, target: GpuTarget, options: object, ttir: str) -> tuple[Noted, Noted]:
        """What the stages made, and noted; nothing where they must run here."""
        device = (target.backend, target.arch, target.warp_size)
        try:
            asked = {"options": dict(vars(options)), "target": device, "ttir": ttir}
            content = asking.written(asked)
        except (ValueError, SyntaxError):
            return {}, {}
        try:
            key = hashlib.sha256(content).hexdigest()
            _, made = self._workshop.ask(asking.TRITON, content, key)
        except WorkshopGone:
            return {}, {}
        if made is None:
            return {}, {}
        answer = asking.read(made)
        return answer["stages"], answer["metadata"]

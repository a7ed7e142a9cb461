"""A Python submission is imported once where compilers may run; what they made is its archive."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_runner.data.flags import NO_NVTX
from gpu_runner.data.normal_form import NormalForm, form_of
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device.device import cuda_architecture
from gpu_runner.supervisor.device.toolchain import python_packages
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import PROGRAMS

if TYPE_CHECKING:
    from gpu_runner.supervisor.build.importer import Importer


@dataclass(frozen=True)
class ModuleRecipe(Recipe):
    """The import of a Python module, in a jail that has compilers.

    `files` holds the text that runs, in `NormalForm`, of which alone the result depends.
    """

    form: NormalForm = field(default=NormalForm(""), compare=False)
    direction: Direction = Direction.FORWARD
    waiting: Callable[[], Importer | None] = field(default=lambda: None, compare=False)
    """Returns a process that was started ahead, or None."""

    @property
    def result(self) -> str:
        return "prepared.tar"

    @property
    def step(self) -> str:
        return "importing the module"

    @property
    def runs_source(self) -> bool:
        return True

    @property
    def compiler(self) -> str:
        """Python, and the packages that kernels are written with."""
        packages = [f"{name} {version}" for name, version in python_packages().items()]
        return ", ".join([f"Python {platform.python_version()}", *packages])

    def command(self) -> list[str]:
        """See `Recipe.command`. It is only shown: the source to import comes over a socket."""
        program = (sys.executable, "-m", "gpu_runner.engine.runner.preparation", self.source)
        return [*program, self.direction.value, self.kind.value]

    def key(self) -> str:
        """See `Recipe.key`; our own code that prepares is part of it."""
        parts = [super().key(), self.compiler, *self.environment.values(), _own_code()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def module_recipe(solution: Solution, config: SupervisorConfig) -> ModuleRecipe:
    """How a Python submission is prepared."""
    form = form_of(solution)
    return ModuleRecipe(
        {form.name: form.text, **form.files},
        form.name,
        config.kind,
        (),
        environment=module_environment(config),
        form=form,
        direction=solution.direction,
    )


def handed_over(form: NormalForm) -> str:
    """A source as the processes that run it get it."""
    return json.dumps(asdict(form))


def module_environment(config: SupervisorConfig) -> dict[str, str]:
    """Where compilers are found, and for which GPU they compile; the same wherever it asks.

    So is what a module makes of `hash()` and sets: flags, and names of macros.
    """
    programs = {"PATH": _PROGRAMS, "PYTHONHASHSEED": "0", **_INDUCTOR}
    if config.kind is not DeviceKind.CUDA:
        return programs
    digits = cuda_architecture(config.index).removeprefix("sm_")
    letter = digits[-1] if digits[-1].isalpha() else ""
    number = digits.removesuffix(letter)
    targets = {"TORCH_CUDA_ARCH_LIST": f"{number[:-1]}.{number[-1]}{letter}"}
    return {**programs, **targets, "NVCC_APPEND_FLAGS": NO_NVTX}


def modules_ahead(config: SupervisorConfig, *, whole: bool) -> str:
    """What a process for modules imports before it has one; whole: also PyTorch's compiler."""
    if config.kind is not DeviceKind.CUDA:
        return ""
    return "triton,torch._inductor.compile_fx" if whole else "triton"


_PACKAGE = Path(__file__).resolve().parents[2]
_PROGRAMS = f"{PROGRAMS}:{sys.prefix}/bin"
_INDUCTOR = {  # which reads them when it is imported
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # no pool of processes that outlives a call
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}


def _own_code() -> str:
    names = ("preparation", "prepared", "programs", "module", "beside", "extensions", "asking")
    return "".join((_PACKAGE / f"engine/runner/{name}.py").read_text() for name in names)

"""A Python submission is imported once where compilers may run; what they made is its archive."""

from __future__ import annotations

import hashlib
import platform
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.solution import Solution
from gpu_runner.data.static import names_extensions
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import cuda_architecture
from gpu_runner.supervisor.device.python_packages import python_packages
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import PROGRAMS, python_paths

_SOURCE = "kernel.py"


@dataclass(frozen=True)
class ModuleRecipe(Recipe):
    """The import of a Python module, in a jail that has compilers."""

    @property
    def result(self) -> str:
        """See `Recipe.result`."""
        return "prepared.tar"

    @property
    def step(self) -> str:
        """See `Recipe.step`."""
        return "importing the module"

    @property
    def compiler(self) -> str:
        """Python, and the packages that kernels are written with."""
        packages = [f"{name} {version}" for name, version in python_packages().items()]
        return ", ".join([f"Python {platform.python_version()}", *packages])

    def command(self) -> list[str]:
        """See `Recipe.command`; the flags are the program's words."""
        program = (sys.executable, "-m", "gpu_runner.engine.preparation", self.source)
        return [*program, *self.flags, self.result]

    def script(self) -> str:
        """See `Recipe.script`."""
        return shlex.join(self.command())

    def key(self) -> str:
        """See `Recipe.key`; our own code that prepares is part of it."""
        parts = [super().key(), self.compiler, *self.environment.values(), _own_code()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def module_recipes(solution: Solution, config: SupervisorConfig) -> tuple[ModuleRecipe, ...]:
    """How a Python submission is prepared: ways to try in order, which differ in nothing but time.

    What compiles by `load_inline` sees `TORCH_HEADERS` first, and torch's own alone where those do
    not do.
    """
    words = (solution.direction.value, config.kind.value)
    paths = tuple(python_paths())
    full = {**python_environment(), **module_environment(config)}
    slim = {**full, "CPATH": str(toolchain.TORCH_HEADERS)}  # searched before -isystem
    return tuple(
        ModuleRecipe({_SOURCE: solution.source}, _SOURCE, config.kind, words, paths, environment=e)
        for e in ((slim, full) if names_extensions(solution.source) else (full,))
    )


def python_environment() -> dict[str, str]:
    """What a jailed Python needs to find this package."""
    return {"PYTHONPATH": str(_PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"}


def module_environment(config: SupervisorConfig) -> dict[str, str]:
    """Where `load_inline` finds ninja, and for which GPU it compiles; the same wherever it asks."""
    programs = {"PATH": _PROGRAMS}
    if config.kind is not DeviceKind.CUDA:
        return programs
    digits = cuda_architecture(config.index).removeprefix("sm_")
    letter = digits[-1] if digits[-1].isalpha() else ""
    number = digits.removesuffix(letter)
    return {**programs, "TORCH_CUDA_ARCH_LIST": f"{number[:-1]}.{number[-1]}{letter}"}


def ninja() -> str:
    """The ninja that Python kernels can start: the system's, or that of Python's environment."""
    return shutil.which("ninja", path=_PROGRAMS) or ""


_PACKAGE = Path(__file__).resolve().parents[2]
_PROGRAMS = f"{PROGRAMS}:{sys.prefix}/bin"


def _own_code() -> str:
    names = ("preparation.py", "prepared.py", "programs.py", "module.py")
    programs = (_PACKAGE / "engine" / name for name in names)
    return "".join([*(path.read_text() for path in programs), *toolchain.torch_headers().values()])

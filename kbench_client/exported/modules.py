"""A kernel in Python: the modules of its folder see each other by name, and nobody else does."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import FileFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from . import task

_NAME = f"{__package__}.kernel"
_ENTRY = task.FOLDER / task.WINNER["entry"]
_OWN = {
    path.relative_to(task.FOLDER).parts[0].removesuffix(".py")
    for path in task.FOLDER.rglob("*.py")
    if path != _ENTRY
}
"""What `import` finds in the folder: another package may have modules of the same names."""


class _Loader(SourceFileLoader):
    """Runs a module whose `import` is `_import`."""

    def exec_module(self, module: ModuleType) -> None:
        """See `SourceFileLoader`."""
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


def entry() -> ModuleType:
    """The entry, run as a package that the other modules are in."""
    spec = spec_from_file_location(
        _NAME,
        _ENTRY,
        loader=_Loader(_NAME, str(_ENTRY)),
        submodule_search_locations=[str(task.FOLDER)],
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[_NAME] = module_from_spec(spec)  # compilers of kernels look it up there
    spec.loader.exec_module(module)
    return module


def _import(
    name: str,
    globals: Any = None,
    locals: Any = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """As `__import__`, but the folder's modules come first."""
    top = name.partition(".")[0]
    if level or top not in _OWN:
        found = builtins.__import__(name, globals, locals, fromlist or (), level)
        return _importlib() if found is importlib else found
    found = _import_module(name)
    if fromlist:
        return builtins.__import__(found.__name__, globals, locals, fromlist)
    return sys.modules[f"{_NAME}.{top}"]


def _importlib() -> ModuleType:
    """A copy of `importlib` whose `import_module` looks in the kernel's folder first."""
    module = ModuleType(importlib.__name__)
    vars(module).update(vars(importlib), import_module=_import_module)
    return module


def _import_module(name: str, package: str | None = None) -> ModuleType:
    is_own = name.partition(".")[0] in _OWN
    return importlib.import_module(f"{_NAME}.{name}" if is_own else name, package)


def _finder(folder: str) -> FileFinder:
    """Whoever looks for modules in the kernel's folder has them run by `_Loader`."""
    if not Path(folder).is_relative_to(task.FOLDER):
        raise ImportError
    return FileFinder(folder, (_Loader, [".py"]))


sys.path_hooks.insert(0, _finder)

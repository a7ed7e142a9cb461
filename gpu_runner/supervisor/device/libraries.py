"""Which libraries a task's baselines call, and in which version."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import metadata

from gpu_runner.data.formats.kbench import LIBRARY, REFERENCE
from gpu_runner.data.formats.source import functions, parse_module
from gpu_runner.data.task import Task
from gpu_runner.supervisor.device import toolchain


def library_versions(task: Task) -> Mapping[str, str]:
    """By name of each: the packages that its function needs, such as "torch 2.11.0+cu130".

    Packages that aren't installed have no version.
    """
    if not task.library_baselines:
        return {}
    have = functions(parse_module(task.files[REFERENCE], REFERENCE))
    names = task.library_baselines
    return {name: ", ".join(_versions(have[f"{LIBRARY}{name}"])) for name in names}


def _versions(function: ast.FunctionDef) -> Iterator[str]:
    """Versions of what the function imports; of torch, where it imports nothing."""
    imported = {name.partition(".")[0] for name in _imports(function)} - {"torch"}
    if not imported:
        yield f"torch {toolchain.torch_version()}"
    packages = metadata.packages_distributions() if imported else {}
    for module in sorted(imported):
        package = next(iter(packages.get(module, ())), "")
        yield f"{package} {metadata.version(package)}" if package else f"{module}: not installed"


def _imports(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module

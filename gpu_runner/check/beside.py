"""The files beside a source that it needs: those that it includes, imports, or names in strings."""

from __future__ import annotations

import ast
import os.path
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gpu_runner.data.files import FILES_LIMIT, SUFFIXES, check_modules
from gpu_runner.data.formats.text import read_files
from gpu_runner.data.python_source import imported_names, imported_nodes, tree_of
from gpu_runner.data.verdict import Language

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"\n]+)"', re.MULTILINE)
_SUFFIXES = SUFFIXES[Language.PYTHON]


def files_beside(path: Path, source: str) -> dict[str, str]:
    """The texts of the files below a source's folder that it needs, and that those need, by name.

    Raises `DataError` naming a file that lies elsewhere, or that no solution may have.
    """
    found = {path.name: source}
    waiting = list(_needed(path.parent, path.name, source))
    while waiting and len(found) <= FILES_LIMIT:  # `Solution` refuses more
        if (name := waiting.pop()) not in found:
            found |= read_files(path.parent, [name])
            waiting += _needed(path.parent, name, found[name])
    del found[path.name]
    check_modules(found)
    return found


def _needed(folder: Path, name: str, text: str) -> Iterator[str]:
    """The files that exist and that a file's text refers to."""
    nodes: list[ast.AST] = []
    if name.endswith(".py") and (tree := tree_of(text)):
        nodes = list(imported_nodes(tree))
    for each in (*_INCLUDE.findall(text), *_strings(nodes)):
        beside = posixpath.join(posixpath.dirname(name), each)
        places = map(posixpath.normpath, (beside, each))  # where a compiler looks for a header
        yield from [place for place in places if os.path.isfile(folder / place)][:1]
    for module in _modules(nodes, PurePosixPath(name)):
        files = (f"{module}.py", f"{module}/__init__.py")
        yield from (file for file in files if os.path.isfile(folder / file))


def _strings(nodes: list[ast.AST]) -> Iterator[str]:
    """Strings that may be names of sources, such as `load` compiles."""
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if PurePosixPath(text).suffix in _SUFFIXES:
                yield text


def _modules(nodes: list[ast.AST], place: PurePosixPath) -> Iterator[PurePosixPath]:
    """What may be modules or packages that a file imports, with the packages that they are in."""
    imported = [PurePosixPath(name.replace(".", "/")) for name in imported_names(nodes)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and 0 < node.level <= len(place.parents):
            base = place.parents[node.level - 1] / (node.module or "").replace(".", "/")
            imported += [base, *(base / alias.name for alias in node.names)]
    for each in imported:
        yield from (module for module in (each, *each.parents) if module.name)

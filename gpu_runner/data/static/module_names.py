"""What names of a Python module stand for, by its imports and those of modules beside it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from gpu_runner.data.python_source import tree_of

_HANDED_ON = 8  # chosen: modules that hand on what others import; they may do so in a circle


@dataclass(frozen=True)
class Beside:
    """The modules beside an entry: `from common import tl` means what `common` imports as `tl`."""

    texts: Mapping[str, str] = field(default_factory=dict)
    _known: dict[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    _origins: dict[str, str] = field(default_factory=dict, compare=False)

    def meanings(self, nodes: Iterable[ast.AST]) -> dict[str, str]:
        """What each name that these import stands for; the names alone are read, not their use."""
        found: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    found[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom):
                found |= self._taken(node)
        return {name: self._origin(meant) for name, meant in found.items()}

    def origin(self, name: str) -> str:
        """What a full name stands for where modules beside the entry have only imported it."""
        if name not in self._origins:
            self._origins[name] = self._origin(name)
        return self._origins[name]

    def _origin(self, name: str) -> str:
        for _ in range(_HANDED_ON):
            if not (handed_on := next(self._handed_on(name), "")):
                break
            name = handed_on
        return name

    def _taken(self, node: ast.ImportFrom) -> dict[str, str]:
        module = f"{node.module}." if node.module else ""
        names = {alias.asname or alias.name: alias.name for alias in node.names}
        if names.pop("*", ""):
            names |= {name: name for name in self._imports(node.module or "")}
        return {known: module + name for known, name in names.items()}

    def _handed_on(self, name: str) -> Iterator[str]:
        parts = name.split(".")
        for count in range(len(parts) - 1, 0, -1):
            own = self._imports(".".join(parts[:count])).get(parts[count])
            if own and own != name:
                yield ".".join([own, *parts[count + 1 :]])

    def _imports(self, module: str) -> Mapping[str, str]:
        """What a module beside the entry imports; a relative name is enough to find it."""
        if (file := self._files.get(module)) is None:
            return {}
        if file not in self._known:
            self._known[file] = {}  # while it is read
            tree = tree_of(self.texts[file])
            self._known[file] = self.meanings(ast.walk(tree)) if tree else {}
        return self._known[file]

    @cached_property
    def _files(self) -> Mapping[str, str]:
        """The file of a module, by its full name or by the last parts of it."""
        found: dict[str, str] = {}
        for name in self.texts:
            if name.endswith(".py"):
                parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
                found |= {".".join(parts[start:]): name for start in range(len(parts))}
        return found


PLAIN = re.compile(
    r"builtins(?:\.(?:abs|all|any|bool|dict|divmod|enumerate|float|int|isinstance|len|list|map|max"
    r"|min|pow|print|range|reversed|round|set|sorted|str|sum|tuple|zip))?"
)
"""What of `builtins` is as harmless there as under its usual name, and the module's import."""


def harmless(nodes: Sequence[ast.AST], dotted: Callable[[ast.AST], str]) -> set[int]:
    """`id` of nodes that use `builtins` for what is plain, or import a module for its version."""
    found: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and "." in (name := dotted(node)):
            if PLAIN.fullmatch(name):
                found |= {id(node), id(node.value)}
        elif isinstance(node, ast.FunctionDef):
            found |= {id(each) for each in _asks_versions(node, dotted)}
    return found


def _asks_versions(
    function: ast.FunctionDef, dotted: Callable[[ast.AST], str]
) -> Iterator[ast.AST]:
    """Names of `import_module` of which a function's own variable gets `__version__` alone."""
    nodes = list(ast.walk(function))
    read = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    asked = Counter(ast.unparse(n.value) for n in nodes if _is_version(n))
    shared = {
        n for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names
    }
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names = {t.id if isinstance(t, ast.Name) else "" for t in node.targets}
            is_import = dotted(node.value.func) == "importlib.import_module"
            if (
                is_import
                and not names & (shared | {""})
                and all(read[n] == asked[n] for n in names)
            ):
                yield node.value.func


def _is_version(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "__version__"

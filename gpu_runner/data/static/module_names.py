"""What names of a Python module stand for, by its imports and those of modules beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

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

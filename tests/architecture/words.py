"""The names of the code that docs/glossary.md must explain, read from the sources."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = ("kbench_web", "leaderboard_app", "runs_app", "tasks_app")
_MODELS = {"Model"}
_ENUMS = {"Enum", "StrEnum", "IntEnum", "TextChoices", "IntegerChoices"}
_CHOICES = {"TextChoices", "IntegerChoices"}
_STEPS = ("Stage", "State", "Status")


@dataclass(frozen=True)
class Class:
    """A class of the sources: its name (`Run.Status` if it stands in another), bases and values."""

    name: str
    bases: frozenset[str]
    values: tuple[str, ...]

    @property
    def is_enum(self) -> bool:
        """Whether its members are words."""
        return bool(self.bases & _ENUMS)

    @property
    def is_of_steps(self) -> bool:
        """Whether its values are stages or states, which people see."""
        return self.is_enum and (bool(self.bases & _CHOICES) or self.name.endswith(_STEPS))


def models() -> set[str]:
    """Names of the site's models, abstract ones and those that extend them included."""
    known = classes(*SITE)
    found, grown = set(_MODELS), True
    while grown:
        more = {c.name for c in known if c.bases & found} - found
        grown = bool(more)
        found |= more
    return {name for name in found - _MODELS if "." not in name}


def enums() -> list[Class]:
    """Enums of the site and of `gpu_runner.data`; two may have one name."""
    return [c for c in classes(*SITE, "gpu_runner/data") if c.is_enum]


def classes(*folders: str) -> list[Class]:
    """Every class below these folders, but for migrations."""
    return [found for folder in folders for found in _below(folder)]


@functools.cache
def _below(folder: str) -> tuple[Class, ...]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    trees = [ast.parse(path.read_text()) for path in paths if "migrations" not in path.parts]
    return tuple(found for tree in trees for found in _within(tree, ""))


def _within(node: ast.AST, prefix: str) -> Iterator[Class]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            name = prefix + child.name
            bases = frozenset(ast.unparse(base).rsplit(".", 1)[-1] for base in child.bases)
            yield Class(name, bases, tuple(_values(child)))
            yield from _within(child, f"{name}.")


def _values(node: ast.ClassDef) -> Iterator[str]:
    """What its members are: the text, or the first of several."""
    for line in node.body:
        if isinstance(line, ast.Assign):
            value = line.value
            parts = value.elts[:1] if isinstance(value, ast.Tuple) else [value]
            for part in parts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value

"""What a static rule is given, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from gpu_runner.data.static.preprocess import Unit
from gpu_runner.data.static.scopes import Scopes
from gpu_runner.data.static.tokens import Kind, Token
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language

Read = TypeVar("Read")


@dataclass(frozen=True)
class Finding:
    """A line of the source, from 1, and one sentence about it; `subject` tells findings apart."""

    subject: str
    line: int
    sentence: str


@dataclass(frozen=True)
class Case:
    """One source with the task that it is for."""

    unit: Unit
    language: Language
    abi: Abi
    task: Task

    @property
    def streams(self) -> tuple[Sequence[Token], ...]:
        """The tokens as written, and again after the macros."""
        return self.unit.written, *self.unit.passes

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the code, macros put in or not."""
        return frozenset(t.text for part in self.streams for t in part if t.kind is Kind.WORD)

    def places(self, words: Container[str]) -> Iterator[tuple[Sequence[Token], int]]:
        """Where any of `words` stands: a stream, and an index into it."""
        for stream in self.streams:
            for i, token in enumerate(stream):
                if token.text in words and token.kind is Kind.WORD:
                    yield stream, i

    @cached_property
    def defined(self) -> dict[str, int]:
        """Functions that the source defines: name -> line of the name."""
        found: dict[str, int] = {}
        for scopes in self._scopes.values():
            found = {**scopes.defined, **found}
        return found

    def calls_its_own(self, stream: Sequence[Token], i: int) -> bool:
        """Whether the name at `i` is the source's own function, macro, or variable in its block."""
        name = stream[i].text
        if name in self.defined or name in self._macros:
            return True
        if stream is self.unit.written:  # macros take blocks apart
            return any(name in scopes.declared for scopes in self._scopes.values())
        return self._scopes[id(stream)].calls_its_own(i)

    def perhaps_its_own(self, stream: Sequence[Token], i: int) -> bool:
        """Whether the source may have declared the name at `i` for that place, as whatever."""
        return self._scopes[id(stream)].perhaps_its_own(i)

    @cached_property
    def _scopes(self) -> dict[int, Scopes]:
        return {id(stream): Scopes(stream) for stream in self.unit.passes}

    @cached_property
    def _macros(self) -> frozenset[str]:
        directives = self.unit.directives
        return frozenset(d.rest[0].text for d in directives if d.name == "define" and d.rest)


@dataclass(frozen=True)
class Rule(Generic[Read]):
    """A static rule: its name, what it looks for (a line of the manual), and the search itself.

    `Read` is what it is given: a `Case`, or a `ModuleCase`.
    """

    name: str
    looks_for: str
    find: Callable[[Read], Iterable[Finding]]

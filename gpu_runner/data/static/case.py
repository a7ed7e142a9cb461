"""What a static rule is given, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpu_runner.data.static import names
from gpu_runner.data.static.preprocess import Unit
from gpu_runner.data.static.tokens import Kind, Token, text_at
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, Language

MEMBER = {".", "->"}
_AFTER_PARAMETERS = {"const", "noexcept", "override", "final", "volatile"}


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

    @cached_property
    def streams(self) -> tuple[Sequence[Token], Sequence[Token]]:
        """The tokens as written, and again after the source's own macros."""
        return self.unit.written, self.unit.expanded

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
        for name, line in _definitions(self.unit.expanded):
            found.setdefault(name, line)
        return found

    @cached_property
    def own(self) -> frozenset[str]:
        """Names that the source gives to functions, lambdas, variables and macros of its own."""
        code = self.unit.expanded
        lambdas = (
            code[i].text
            for i in range(len(code))
            if text_at(code, i + 1) == "=" and text_at(code, i - 1) not in MEMBER
        )
        variables = (code[i].text for i in names.variables(code))
        macros = (d.rest[0].text for d in self.unit.directives if d.name == "define" and d.rest)
        return frozenset((*self.defined, *lambdas, *variables, *macros))

    @cached_property
    def perhaps_declared(self) -> frozenset[str]:
        """Names that the source may have declared, as whatever."""
        return names.perhaps_declared(self.unit.expanded)


@dataclass(frozen=True)
class Rule:
    """A static rule: its name, what it looks for (a line of the manual), and the search itself."""

    name: str
    looks_for: str
    find: Callable[[Case], Iterable[Finding]]


def _definitions(stream: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """Names before a parameter list that a body follows: `NAME(...) {`."""
    names: list[tuple[str, int]] = []  # before each open bracket
    for i, token in enumerate(stream):
        if token.kind is not Kind.MARK:
            continue
        if token.text == "(":
            before = stream[i - 1] if i else None
            word = before is not None and before.kind is Kind.WORD
            names.append((before.text, before.line) if before and word else ("", 0))
        elif token.text == ")" and names:
            name, line = names.pop()
            j = i + 1
            while text_at(stream, j) in _AFTER_PARAMETERS:
                j += 1
            if name and text_at(stream, j) == "{":
                yield name, line

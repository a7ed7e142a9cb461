"""The rule about hard-coded workloads: a source that tests for the exact public sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_runner.data.static import constants
from gpu_runner.data.static.case import Case, Finding, Rule
from gpu_runner.data.static.tokens import SEARCH_LIMIT, Token, text_at

_TESTS = {"==", "!=", "^", "-"}
_ENDS = {";", "{", "}", "?", ":", ","}
_LIST_BEGINS, _LIST_ENDS = {"{", ",", "(", "<"}, {",", "}", ")", ">"}
_SHORTEST_RUN = 3  # chosen: two numbers beside each other are chance in honest kernels
_MANY = 256
"""Numbers that one place holds at most as far as it is looked at; sizes are few."""
_NATURAL = 16_384
"""Powers of two up to here are what honest kernels have templates for."""


@dataclass
class _Tested:
    """Values that one condition compares something with, or a table holds, and where it stands."""

    line: int
    values: set[int] = field(default_factory=set)

    def add(self, line: int, values: set[int]) -> None:
        """More of them; the first line counts."""
        if values and len(self.values) < _MANY:
            self.line = self.line or line
            self.values |= values


@dataclass(frozen=True)
class _Element:
    """One element of a list: the number that it is, if it is one, and where it ends."""

    values: set[int]
    end: int


@dataclass
class _Condition:
    """What one condition tests for: by equality, by inequality, and by a difference from zero."""

    equal: _Tested = field(default_factory=lambda: _Tested(0))
    unequal: _Tested = field(default_factory=lambda: _Tested(0))
    less: _Tested = field(default_factory=lambda: _Tested(0))
    zero: bool = False

    def add(self, operator: str, line: int, values: set[int]) -> None:
        """One of `_TESTS`, with the numbers beside it."""
        tested = {"!=": self.unequal, "-": self.less}.get(operator, self.equal)
        self.zero = self.zero or (operator in ("==", "!=") and values == {0})
        tested.add(line, values)

    def behind(self, text: str) -> Iterator[_Tested]:
        """What is complete where `&&`, `||` or one of `_ENDS` stands; that begins anew."""
        if text != "&&":
            yield self.equal
            self.equal = _Tested(0)
        if text != "||":
            yield self.unequal
            self.unequal = _Tested(0)
        if text in _ENDS:
            if self.zero:
                yield self.less
            self.less, self.zero = _Tested(0), False


def _hard_coded(case: Case) -> Iterator[Finding]:
    sizes = _public_sizes(case)
    if len(sizes) < 2:
        return
    for stream in case.unit.passes:
        yield from _of_pass(stream, sizes)


def _of_pass(stream: Sequence[Token], sizes: Mapping[str, frozenset[int]]) -> Iterator[Finding]:
    known = constants.constants(stream)
    conditions = list(_conditions(stream, known))
    found: dict[str, int] = {}
    for name, wanted in sizes.items():
        line = next((c.line for c in conditions if wanted <= c.values), 0)
        if line:
            found[name] = line
    if len(found) >= 2:
        names = ", ".join(sorted(found))
        line = min(found.values())
        yield Finding("sizes", line, f"tests for the exact sizes of public workloads: {names}")
    for table in _tables(stream, known):
        if listed := _listed(table, sizes):
            names = ", ".join(sorted(listed))
            yield Finding("table", table.line, f"lists the sizes of public workloads: {names}")


def _public_sizes(case: Case) -> dict[str, frozenset[int]]:
    """For each public workload, the sizes that tell it from the others.

    A size that all workloads share says nothing. Where a single one is left, one that is a small
    power of two says nothing either: there, honest kernels have a template.
    """
    kinds = case.language.device_kinds
    public = {
        workload.name: dict(_integers(workload.parameters))
        for workload in case.task.workloads
        if not workload.hidden and any(kind in workload.devices for kind in kinds)
    }
    keys = {key for sizes in public.values() for key in sizes}
    differ = {k for k in keys if len({sizes.get(k) for sizes in public.values()}) > 1}
    found = {}
    for name, sizes in public.items():
        values = frozenset(value for key, value in sizes.items() if key in differ and value > 1)
        if len(values) > 1 or any(not _natural(value) for value in values):
            found[name] = values
    return found


def _natural(value: int) -> bool:
    return value <= _NATURAL and value & (value - 1) == 0


def _integers(parameters: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for key, value in parameters.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            yield key, value
        elif isinstance(value, list | tuple):
            yield from _integers({f"{key}.{i}": part for i, part in enumerate(value)})


def _conditions(stream: Sequence[Token], known: Mapping[str, int]) -> Iterator[_Tested]:
    """Conditions with the values that they test for, and each label of a `switch`.

    Tests for equality are joined by `&&`, those for inequality by `||`; a difference counts where
    something is compared with zero or negated. A nested `if` or `switch` counts as joined with what
    it stands in only by `&&`: that is enough for a tripwire, and honest nests of templates do not
    trip it.
    """
    condition = _Condition()
    for i, token in enumerate(stream):
        text = text_at(stream, i)
        if text == "case":
            value = constants.value(stream, i + 1, known)
            if value is not None:
                yield _Tested(token.line, {value})
        elif text in _TESTS:
            condition.add(text, token.line, _against(stream, i, known))
        elif text == "!" and text_at(stream, i + 1) == "(":
            condition.zero = True
        elif text in _ENDS or text in ("&&", "||"):
            yield from condition.behind(text)
    yield from condition.behind(";")


def _against(stream: Sequence[Token], i: int, known: Mapping[str, int]) -> set[int]:
    """The number with which the operator at `i` joins something unknown; empty if there is none."""
    values = (constants.before(stream, i, known), constants.value(stream, i + 1, known))
    found = {value for value in values if value is not None}
    return found if values.count(None) == 1 else set()


def _tables(stream: Sequence[Token], known: Mapping[str, int]) -> Iterator[_Tested]:
    """Lists of numbers: braces without a statement in them, and numbers behind one another."""
    elements = {
        i: _element(stream, i + 1, known)
        for i in range(len(stream))
        if text_at(stream, i) in _LIST_BEGINS
    }
    yield from _braces(stream, elements)
    yield from _runs(stream, elements)


def _braces(stream: Sequence[Token], elements: Mapping[int, _Element]) -> Iterator[_Tested]:
    opened: list[_Tested] = []  # braces that hold no statement so far
    for i, token in enumerate(stream):
        text = text_at(stream, i)
        if text == ";":
            opened.clear()
        elif text == "{":
            opened.append(_Tested(token.line))
        elif text == "}" and opened:
            closed = opened.pop()
            if opened:
                opened[-1].add(closed.line, closed.values)
            else:
                yield closed
        if opened and i in elements:
            opened[-1].add(token.line, elements[i].values)


def _runs(stream: Sequence[Token], elements: Mapping[int, _Element]) -> Iterator[_Tested]:
    run = _Tested(0)
    for i, element in elements.items():
        if text_at(stream, i) != ",":
            run = _Tested(0)
        run.add(stream[i].line, element.values)
        if not element.values or text_at(stream, element.end) != ",":
            if len(run.values) >= _SHORTEST_RUN:
                yield run
            run = _Tested(0)


def _element(stream: Sequence[Token], start: int, known: Mapping[str, int]) -> _Element:
    """What stands in a list at `start`."""
    end = start
    while end < start + SEARCH_LIMIT and text_at(stream, end) not in _LIST_ENDS:
        if text_at(stream, end) in ("(", "{", ";", "") and end > start:
            return _Element(set(), end)
        end += 1
    value = constants.value(stream, start, known)
    return _Element(set() if value is None else {value}, end)


def _listed(table: _Tested, sizes: Mapping[str, frozenset[int]]) -> list[str]:
    """Workloads whose sizes a table holds, if it can be made for these alone.

    All of them, or three, have to stand in it. Powers of two are what honest tables hold, unless
    most of them are sizes of workloads.
    """
    found = [name for name, wanted in sizes.items() if wanted <= table.values]
    odd = any(not _natural(value) for name in found for value in sizes[name])
    if len(found) < min(len(sizes), 3) or not odd:
        return []
    public = set().union(*sizes.values())
    powers = all(value & (value - 1) == 0 for value in table.values)
    return [] if powers and 2 * len(public & table.values) <= len(table.values) else found


WORKLOAD_RULES = (
    Rule(
        "hard-coded-workloads",
        "conditions that test for all distinguishing sizes of two or more public workloads at "
        "once, and tables of the sizes of three or all; a single small power of two, one dimension "
        "out of several, and tables of powers of two are fine",
        _hard_coded,
    ),
)

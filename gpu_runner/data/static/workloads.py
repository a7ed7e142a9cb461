"""The rule about hard-coded workloads: a source that tests for the exact public sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_runner.data.static.case import Case, Finding, Rule
from gpu_runner.data.static.tokens import Kind, Token, text_at

_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)")
_JOINS = {"&&", "(", ")"}
_ENDS = {";", "{", "}", "||", "?", ":", ","}
_NATURAL = 16_384
"""Powers of two up to here are what honest kernels have templates for."""


@dataclass
class _Tested:
    """Values that one condition compares something with, and where it stands."""

    line: int
    values: set[int] = field(default_factory=set)


def _hard_coded(case: Case) -> Iterator[Finding]:
    sizes = _public_sizes(case)
    if len(sizes) < 2:
        return
    conditions = list(_conditions(case.unit.expanded))
    found: dict[str, int] = {}
    for name, wanted in sizes.items():
        line = next((c.line for c in conditions if wanted <= c.values), 0)
        if line:
            found[name] = line
    if len(found) >= 2:
        names = ", ".join(sorted(found))
        line = min(found.values())
        yield Finding("sizes", line, f"tests for the exact sizes of public workloads: {names}")


def _public_sizes(case: Case) -> dict[str, frozenset[int]]:
    """For each public workload, the sizes that tell it from the others.

    A size that all workloads share says nothing. Where a single one is left, one that is a small
    power of two says nothing either: there, honest kernels have a template.
    """
    kind = case.language.device_kind
    public = {
        workload.name: dict(_integers(workload.parameters))
        for workload in case.task.workloads
        if not workload.hidden and kind in workload.devices
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


def _conditions(stream: Sequence[Token]) -> Iterator[_Tested]:
    """Conditions whose equality tests are joined by `&&`, and each label of a `switch`.

    A nested `if` or `switch` counts as joined with what it stands in only by `&&`: that is enough
    for a tripwire, and honest nests of templates do not trip it.
    """
    constants = _constants(stream)
    current = _Tested(0)
    for i, token in enumerate(stream):
        text = text_at(stream, i)
        if text == "case":
            value = _value(stream, i + 1, constants)
            if value is not None:
                yield _Tested(token.line, {value})
        elif text == "==":
            values = (_before(stream, i, constants), _value(stream, i + 1, constants))
            known = {value for value in values if value is not None}
            if len(known) == 1:  # something unknown against a number
                current.line = current.line or token.line
                current.values |= known
        elif text in _ENDS and current.values:
            yield current
            current = _Tested(0)
    if current.values:
        yield current


def _constants(stream: Sequence[Token]) -> dict[str, int]:
    """Names that the source gives a number once: `constexpr int N = 4096;`, `enum { N = 3 }`."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    constant = False
    for i, token in enumerate(stream):
        if token.text in ("const", "constexpr", "enum"):
            constant = True
        elif token.text in (";", ")"):
            constant = False
        elif constant and token.text == "=" and stream[i - 1].kind is Kind.WORD:
            name = stream[i - 1].text
            value = _value(stream, i + 1, found)
            if name in found or value is None:
                twice.add(name)
            else:
                found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


def _before(stream: Sequence[Token], i: int, constants: Mapping[str, int]) -> int | None:
    """The number that ends before `i`, as in `4096 == N`."""
    at = i - 1
    while text_at(stream, at) == ")":
        at -= 1
    before = text_at(stream, at - 1)
    if at < 0 or before in ("*", "/", "+", "-", "%", ".", "->", "<<"):
        return None
    return _number(stream[at], constants)


def _value(stream: Sequence[Token], start: int, constants: Mapping[str, int]) -> int | None:
    """A product, sum or shift of numbers that begins at `start`; None for anything else."""
    end = start
    while end < len(stream) and text_at(stream, end) == "(":
        end += 1
    value = _number(stream[end], constants) if end < len(stream) else None
    end += 1
    while value is not None and text_at(stream, end) in ("*", "<<", "+"):
        other = _number(stream[end + 1], constants) if end + 1 < len(stream) else None
        if other is None:
            return None
        value = _combined(value, text_at(stream, end), other)
        end += 2
    if text_at(stream, end) in ("-", "/", "%", ".", "[", "(", "::", "->"):
        return None
    return value


def _combined(value: int, mark: str, other: int) -> int | None:
    if mark == "<<":
        return value << other if other < 48 and value < 1 << 16 else None
    result = value * other if mark == "*" else value + other
    return result if math.log2(result + 1) < 64 else None


def _number(token: Token, constants: Mapping[str, int]) -> int | None:
    if token.kind is Kind.WORD:
        return constants.get(token.text)
    if token.kind is not Kind.NUMBER:
        return None
    text = token.text.replace("'", "").rstrip("uUlLzZ")
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        return None
    if text[:2] in ("0x", "0X", "0b", "0B"):
        return int(text, 0)
    return int(text, 8) if text.startswith("0") and set(text) <= set("01234567") else _decimal(text)


def _decimal(text: str) -> int | None:
    return None if len(text) > 1 and text.startswith("0") else int(text)


WORKLOAD_RULES = (
    Rule(
        "hard-coded-workloads",
        "conditions that test for all distinguishing sizes of two or more public workloads at "
        "once; a single small power of two, and one dimension out of several, are fine",
        _hard_coded,
    ),
)

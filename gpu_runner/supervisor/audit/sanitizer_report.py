"""Reads what the sanitizers of C++ said of a submission, and tells faults from remarks; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_USUAL = ("kernel.cpp",)
"""The files of a submission that is compiled for a CPU, unless it has several."""

_ADDRESS = re.compile(r"ERROR: AddressSanitizer:? (?:attempting )?([\w-]+)")
_NULL = re.compile(r"ERROR: AddressSanitizer:? SEGV on unknown address 0x0+[0-9a-f]{0,3}\b")
"""An access through a null pointer, or the few bytes behind one."""
_ARGUMENT = re.compile(
    r"kbench: (read|write) of (\d{1,18}) bytes, (\d{1,18}) bytes (before|behind) argument (\d{1,4})"
)
_LEFTOVER = re.compile(r"kbench: (outputs depend on memory that nobody wrote)")
_UNDEFINED = re.compile(r":(\d{1,9}):\d{1,9}: runtime error: (.+)")
_LONGEST_PATH = 512  # chosen: our paths are shorter, and expressions must not take long
_RACE = re.compile(r"WARNING: ThreadSanitizer: (data race|heap-use-after-free)")
_OUT_OF_MEMORY = r"(?:out[ -]of[ -]memory|failed to allocate|rss-limit-exceeded)"
_RAN_OUT = re.compile(
    rf"Sanitizer[^\n]{{0,40}}{_OUT_OF_MEMORY}|^=========[^\n]*{_OUT_OF_MEMORY}"
    r"|Thread limit \(\d+ threads\) exceeded",
    re.IGNORECASE | re.MULTILINE,
)
"""A tool that got no memory for itself, or for what the submission asked of it."""

_OURS = ("runner.cpp", "device_sanitized.h", "leftovers.h", "gomp_order.h")

BREAKING = (
    "out of bounds for type",
    "load of null pointer",
    "store to null pointer",
    "with insufficient space",
    "division by zero",
    "unreachable program point",
    "end of a value-returning function",
    "variable length array bound",
    "is not a valid value for type",
)
"""Undefined behaviour that reads or writes where nothing is, or computes with what is not there.

The rest (signed overflow, shifts, misaligned or wrapped pointers) does on these machines what its
author expects: it is shown, and breaks no rule.
"""


@dataclass(frozen=True)
class Finding:
    """One line for a person; only what `breaks` a rule is held against the submission."""

    words: str
    breaks: bool = True


def memory_findings(
    report: str, names: Sequence[str], files: Sequence[str] = _USUAL
) -> list[Finding]:
    """What AddressSanitizer found; `names` are the signature's parameters, in order.

    files: names of the submission's.
    """
    match = _ADDRESS.search(report)
    if match is None or _starved(report, match):
        return []
    what = match[1]
    argument = _ARGUMENT.search(report)
    if argument and int(argument[5]) < len(names):  # the submission can print such a line, too
        access, size, distance, where, index = argument.groups()
        what = f"a {access} of {size} bytes out of bounds, {distance} bytes {where} "
        what += repr(names[int(index)])
    return [Finding(what + _at(report[match.start() :], files))]


def ran_out(report: str) -> bool:
    """Whether a sanitizer says that it got no memory; the submission could say so in its place."""
    return _RAN_OUT.search(report) is not None


def _starved(report: str, match: re.Match[str]) -> bool:
    """Whether an error is that there was no memory, or a use of what was not given for that."""
    first = _RAN_OUT.search(report)
    if first is None or first.start() >= match.end():
        return False
    return first.end() > match.start() or _NULL.match(report, match.start()) is not None


def undefined_findings(
    report: str, *, source_only: bool = False, files: Sequence[str] = _USUAL
) -> list[Finding]:
    """What UndefinedBehaviorSanitizer found, each place once, the worst first.

    With `source_only`, what it found in headers is left out: torch's are not the author's.
    """
    found: dict[tuple[str, str], Finding] = {}
    own = tuple(PurePosixPath(file).name for file in files)
    ours = {*_OURS} - {*own}
    starved = ran_out(report)  # then null pointers are what allocations gave
    for match in _UNDEFINED.finditer(report):
        line, words = match.groups()
        name = _file_before(report, match.start())
        if not name.endswith(own) if source_only else name in ours:
            continue
        breaks = any(word in words for word in BREAKING)
        breaks = breaks and not (starved and "null pointer" in words)
        found.setdefault((name, line), Finding(f"{words[:200]}, at {name}:{line}", breaks))
    return sorted(found.values(), key=lambda finding: not finding.breaks)


def _file_before(report: str, end: int) -> str:
    """Name of the file whose path ends there, behind whatever else stands in that line."""
    words = report[max(0, end - _LONGEST_PATH) : end].split()
    return words[-1].rsplit("/", 1)[-1] if words else ""


def leftover_findings(report: str) -> list[Finding]:
    """Whether outputs depend on memory that nobody wrote."""
    match = _LEFTOVER.search(report)
    return [Finding(match[1])] if match else []


def race_findings(report: str, files: Sequence[str] = _USUAL) -> list[Finding]:
    """What ThreadSanitizer found, with both places where they are known."""
    match = _RACE.search(report)
    if match is None:
        return []
    first, _, second = report[match.start() :].partition("Previous ")
    places = [place for part in (first, second) if (place := _place(part, files))]
    both = " and ".join(dict.fromkeys(places))
    where = f" between {both}" if len(set(places)) > 1 else _at(report, files)
    return [Finding(match[1] + where)]


def _at(report: str, files: Sequence[str]) -> str:
    place = _place(report, files)
    return f", at {place}" if place else ""


def _place(report: str, files: Sequence[str]) -> str:
    """The first line of a submission's file that a report names."""
    found = re.search(rf"\b((?:{'|'.join(map(re.escape, files))}):\d+)", report)
    return found[1] if found else ""

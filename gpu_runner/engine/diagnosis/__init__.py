"""Describes a wrong output and its likely cause, from its numbers alone.

We name a cause only if the numbers support it. We look at a sample of the elements, so that an
output of 2^28 elements costs little more than a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from gpu_runner.data.symptom import GENERAL, Finding, Symptom
from gpu_runner.engine.diagnosis import errors, memory, relations
from gpu_runner.engine.diagnosis.case import Case
from gpu_runner.engine.diagnosis.places import place_of

__all__ = ["Case", "diagnose"]

_MOST = 3  # findings
_REACH = "do the grid and its loops reach it?"
_LARGE = 1 << 22  # elements
_SOME, _SEVERAL = 8, 32  # elements: of fewer, a place may be chance
_SCATTERED, _OUT_OF = 0.01, 1 << 10

_SMALL_ERRORS: tuple[Callable[[Case], Finding | None], ...] = (
    errors.rounded,
    errors.other_formula,
    errors.slightly_off,
    errors.lower_precision,
)
_OF_NUMBERS: tuple[Callable[[Case], Finding | None], ...] = (
    relations.values,
    relations.elsewhere,
    errors.rounded,
    relations.by_line,
    errors.other_formula,
    errors.slightly_off,
    errors.lower_precision,
    errors.part_missing,
)


def diagnose(case: Case) -> tuple[Finding, ...]:
    """What the output looks like, the most explaining first; empty if it looks like nothing known.

    Where no element is wrong, but the whole is off, all small errors are looked at.
    """
    with _threads_for(case.elements):
        if case.wrong_elements == 0:
            return tuple(_first(case, _SMALL_ERRORS))
        found: list[Finding] = []
        for finding in _findings(case):
            if all(finding.symptom is not each.symptom for each in found):
                found.append(finding)
        return tuple(found[:_MOST])


@contextmanager
def _threads_for(elements: int) -> Iterator[None]:
    """One thread for the many small steps: on a busy host a team waits for its last member."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if elements < _LARGE else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _findings(case: Case) -> Iterator[Finding]:
    whole = memory.other_dtype(case) or memory.read_before_set(case)
    if whole is not None:
        yield whole
        return
    all_wrong = case.wrong
    unset, mask = memory.unset(case)
    yield from unset
    if mask is not None:
        case = case.without(mask)
    if case.wrong_elements == 0:
        return
    if (special := case.special()) is not None:
        yield _special(case.without(~special))
        case = case.without(special)
        if case.wrong_elements == 0:
            return
    numbers = list(_first(case, _OF_NUMBERS))
    yield from numbers
    if mask is None:  # what was not set has a place of its own, and takes part in none
        yield from _places(replace(case, wrong=all_wrong), explained=bool(numbers))


def _first(case: Case, looks: tuple[Callable[[Case], Finding | None], ...]) -> Iterator[Finding]:
    for look in looks:
        if (finding := look(case)) is not None:
            yield finding
            return


def _special(case: Case) -> Finding:
    """Of elements that are NaN or infinite, or ought to be."""
    have, dtype = case.sample.have, case.actual.dtype
    want = case.sample.want.to(dtype).double()
    if not torch.isfinite(want).all() and torch.isfinite(have).double().mean() >= 0.5:
        return Finding(symptom=Symptom.FINITE, text=GENERAL[Symptom.FINITE])
    nan, infinite = torch.isnan(have), torch.isinf(have)
    if not nan.any():
        return Finding(symptom=Symptom.INFINITE, text=GENERAL[Symptom.INFINITE])
    if infinite.any():
        text = (
            "NaN, and infinity beside it: an overflow, then inf - inf or inf / inf, such as exp "
            "without subtracting the maximum"
        )
        return Finding(symptom=Symptom.NOT_A_NUMBER, text=text)
    return Finding(symptom=Symptom.NOT_A_NUMBER, text=GENERAL[Symptom.NOT_A_NUMBER])


def _places(case: Case, *, explained: bool) -> Iterator[Finding]:
    """Where the wrong elements are; which they are, or that they are few, only if unexplained."""
    right = case.elements - case.wrong_elements
    place = place_of(case.wrong) if right >= _SOME and case.elements >= _SEVERAL else None
    if place is not None and place.is_end:
        small = case.wrong_elements <= case.elements / 4
        hint = "does it handle sizes that are not a multiple of the block?" if small else _REACH
        text = f"wrong only in {place.words}: {hint}"
        yield Finding(symptom=Symptom.TAIL, text=text)
    elif place is not None and place.is_regular:
        text = f"wrong only in {place.words}: some threads or blocks compute it differently"
        yield Finding(symptom=Symptom.REGION, text=text)
    elif explained:
        return
    elif by_size := errors.by_size(case):
        yield by_size
    elif case.elements >= _OUT_OF and case.wrong_elements < _SCATTERED * case.elements:
        yield Finding(symptom=Symptom.SCATTERED, text=GENERAL[Symptom.SCATTERED])

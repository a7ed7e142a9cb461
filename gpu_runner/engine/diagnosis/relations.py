"""Wrong values that are the right ones times a factor, moved, in another place and the like."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from gpu_runner.data.symptom import GENERAL, Finding, Symptom
from gpu_runner.engine.diagnosis.case import Case, Sample, distinct, mostly

_ENOUGH = 8  # elements that agree on a number which could be any
_SIMPLE = tuple(float(k) for k in (2, 3, 4, 5, 8, 10, 16, 32, 64, 100, 128, 256, 512, 1000, 1024))
_ALIKE = 16  # elements that tell a place from another, at least
_LOOKED_AT = 1 << 12  # elements
_LINES, _IN_A_LINE = 64, 32
_DISTINCT = 64  # expected values: of fewer, equal counts of each may be chance
_TELLING = 0.25  # of the lines, whose expected values differ
_SORTED_AT_MOST = 1 << 17  # chosen: elements that are sorted in milliseconds
_FINE = 1e-3  # relative: a bound above says little of one element


def values(case: Case) -> Finding | None:
    """One number that turns what is expected into what there is."""
    return zeros(case.sample) or repeated(case.sample) or multiple(case.sample)


def zeros(sample: Sample) -> Finding | None:
    """Every wrong element is zero."""
    if not mostly(sample.have == 0, 1.0):
        return None
    return Finding(symptom=Symptom.ZEROS, text=GENERAL[Symptom.ZEROS])


def repeated(sample: Sample) -> Finding | None:
    """Every wrong element is the same, and ought not to be."""
    alike = sample.size >= _ENOUGH and mostly(sample.have == sample.have[0], 1.0)
    if not alike or not _differs(sample):
        return None
    return Finding(symptom=Symptom.REPEATED, text=GENERAL[Symptom.REPEATED])


def _differs(sample: Sample) -> bool:
    """Whether the expected values differ by more than what is allowed."""
    spread = sample.want.max() - sample.want.min() if sample.size else torch.zeros(())
    return bool(spread > 8 * sample.allowed.max())


def multiple(sample: Sample) -> Finding | None:
    """All off by the same factor, or by the same amount."""
    large = sample.want.abs() >= sample.want.abs().median()
    usable = sample.of(large & (sample.want != 0))
    if usable.size == 0:
        return None
    factor = (usable.have / usable.want).median().item()
    amount = (sample.have - sample.want).median().item()
    if mostly(_near(sample, sample.want)):  # they are too close to tell what moved them
        return None
    by_factor = factor != 0 and mostly(_near(sample, factor * sample.want, factor))
    by_amount = mostly(_near(sample, sample.want + amount))
    if sample.size < _ENOUGH or not _differs(sample):
        return (
            _simple(sample, factor) if by_factor and not (by_amount and sample.size > 1) else None
        )
    if by_factor == by_amount:  # they cannot be told apart
        return None
    if by_amount:
        text = f"wrong values are off by {amount:.4g}: a bias, an epsilon or an initial value"
        return Finding(symptom=Symptom.OFFSET, text=text)
    return _of_factor(factor)


def _near(sample: Sample, other: Tensor, factor: float = 1.0) -> Tensor:
    allowed = 2 * sample.allowed * max(1.0, abs(factor))
    return (sample.have - other).abs() <= allowed.clamp(min=1e-12 * other.abs().max().item())


def _simple(sample: Sample, factor: float) -> Finding | None:
    """Few elements agree on some number by chance; on one that somebody would write, hardly."""
    # Small whole numbers have simple ratios anyway.
    telling = (sample.want.abs() > 1000) | (sample.want != sample.want.round())
    fine = mostly(telling & (sample.allowed <= _FINE * sample.want.abs()), 1.0)
    known = (sign * each for k in _SIMPLE for each in (k, 1 / k) for sign in (1, -1))
    close = min((-1.0, *known), key=lambda each: abs(each - factor))
    if not fine or not mostly(_near(sample, close * sample.want, close), 1.0):
        return None
    return _of_factor(close)


def _of_factor(factor: float) -> Finding | None:
    if abs(factor + 1) < _FINE:
        return Finding(symptom=Symptom.SIGN, text=GENERAL[Symptom.SIGN])
    text = (
        f"wrong values are {factor:.5g} times what was expected: a scale, or the divisor of a mean"
    )
    return Finding(symptom=Symptom.FACTOR, text=text)


def by_line(case: Case) -> Finding | None:
    """Each row, or each column, is off by a factor or an amount of its own, or holds one value."""
    if len(case.shape) < 2 or case.elements == 0:
        return None
    width = case.shape[-1]
    rows = case.elements // width
    for name, lines, length in (("row", rows, width), ("column", width, rows)):
        if lines < 4 or length < 4:
            continue
        sample = _lines(case, name, lines, length)
        finite = torch.isfinite(sample.have) & torch.isfinite(sample.want)
        if mostly(finite, 1.0) and (finding := _of_lines(sample, name)):
            return finding
    return None


def _lines(case: Case, name: str, lines: int, length: int) -> Sample:
    """Elements of some lines: `_IN_A_LINE` neighbours in the sample are of the same one."""
    line = case.random(lines, _LINES).repeat_interleave(_IN_A_LINE)
    within = case.random(length, _LINES * _IN_A_LINE)
    width = case.shape[-1]
    return case.at(line * width + within if name == "row" else within * width + line)


def _of_lines(sample: Sample, name: str) -> Finding | None:
    have, want, allowed = (
        part.view(-1, _IN_A_LINE) for part in (sample.have, sample.want, sample.allowed)
    )
    telling = want.amax(1) - want.amin(1) > 16 * allowed.amax(1)
    if not mostly(telling, _TELLING):
        return None
    have, want, allowed = have[telling], want[telling], allowed[telling]
    if mostly(have.amax(1) == have.amin(1), 1.0):
        text = f"each {name} has one value throughout: an index that doesn't change in it"
        return Finding(symptom=Symptom.REPEATED, text=text)
    ratio = torch.where(
        want.abs() >= want.abs().median(1, keepdim=True).values, have / want, torch.nan
    )
    factor = ratio.nanmedian(1, keepdim=True).values
    amount = (have - want).median(1, keepdim=True).values
    near = 4 * allowed * factor.abs().clamp(min=1)
    by_factor = mostly((have - factor * want).abs() <= near)
    by_amount = mostly((have - want - amount).abs() <= 4 * allowed)
    if by_factor == by_amount:
        return None
    if by_factor and mostly((factor - 1).abs() * want.abs().amax(1, keepdim=True) > near, 0.5):
        text = f"each {name} is off by its own factor: the {name}'s sum, norm or scale is wrong"
        return Finding(symptom=Symptom.FACTOR_BY_LINE, text=text)
    if by_amount and mostly(amount.abs() > 4 * allowed, 0.5):
        text = f"each {name} is off by its own amount: the {name}'s mean, maximum or bias is wrong"
        return Finding(symptom=Symptom.OFFSET_BY_LINE, text=text)
    return None


def elsewhere(case: Case) -> Finding | None:
    """The right values in other places."""
    for symptom, text, here, there in _moves(case):
        if _moved(case, here, there):
            return Finding(symptom=symptom, text=text)
    return _permuted(case)


def _moves(case: Case) -> Iterator[tuple[Symptom, str, Tensor, Tensor]]:
    """Ways to move elements, each as flat positions: what belongs to one is at the other."""
    count = min(case.elements, _LOOKED_AT)
    at = torch.arange(count) if count == case.elements else case.random(case.elements, count)
    shape = case.shape
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    index = {axis: at // strides[axis] % shape[axis] for axis in axes}
    for order in _orders(axes):
        text = f"the right values, but with dimensions in the order {', '.join(map(str, order))}"
        if len(axes) == 2:
            text = "the right values, but transposed: rows and columns are swapped in the output"
        moved = torch.zeros_like(at)
        for place, axis in enumerate(order):
            moved += index[axis] * math.prod(shape[other] for other in order[place + 1 :])
        yield Symptom.TRANSPOSED, text, at, moved
    for axis, step in itertools.product(axes, (1, -1)):
        inside = (index[axis] + step >= 0) & (index[axis] + step < shape[axis])
        text = "the right values, but one place off: an index that starts one too early or late"
        if len(axes) > 1:
            text = (
                f"the right values, but one place off along dimension {axis}: an index off by one"
            )
        yield Symptom.SHIFTED, text, at[inside], at[inside] + step * strides[axis]
    for axis in axes:
        mirrored = at + (shape[axis] - 1 - 2 * index[axis]) * strides[axis]
        text = f"the right values, but in the opposite order along dimension {axis}"
        yield Symptom.REVERSED, text, at, mirrored


def _orders(axes: list[int]) -> Iterator[tuple[int, ...]]:
    if len(axes) > 4:
        yield (*axes[:-2], axes[-1], axes[-2])
        return
    yield from itertools.islice(itertools.permutations(axes), 1, None)


def _moved(case: Case, here: Tensor, there: Tensor) -> bool:
    """Whether what belongs `here` is `there`, as elements that differ between the two tell."""
    want, allowed = case.wanted(here)
    other, _ = case.wanted(there)
    have = case.have(there)
    telling = (want - other).abs() > 8 * allowed
    if int(telling.sum().item()) < min(_ALIKE, case.elements // 2) or case.elements < _ENOUGH:
        return False
    return mostly(((have - want).abs() <= 2 * allowed)[telling])


def _permuted(case: Case) -> Finding | None:
    """The wrong elements are those that are expected there, in another order."""
    if not 2 <= case.wrong_elements <= _SORTED_AT_MOST:
        return None
    sample = case.at(case.wrong.reshape(-1).nonzero().reshape(-1).cpu())
    far = mostly((sample.have - sample.want).abs() > 4 * sample.allowed, 0.9)
    if not far or distinct(sample.want) < min(_DISTINCT, sample.size):
        return None
    have, (want, order) = sample.have.sort().values, sample.want.sort()
    allowed = sample.allowed[order]
    # Values that lie close by would agree in order, whatever they are.
    gap = (want[-1] - want[0]).item() / sample.size
    if gap * sample.size**0.5 <= 20 * allowed.median().item() or not _differs(sample):
        return None
    if not mostly((have - want).abs() <= 2 * allowed, 1.0):
        return None
    return Finding(symptom=Symptom.PERMUTED, text=GENERAL[Symptom.PERMUTED])

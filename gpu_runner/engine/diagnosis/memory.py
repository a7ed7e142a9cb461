"""Outputs that still hold the bytes from before the call, or those of another dtype."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.data.poison import HUGE
from gpu_runner.data.symptom import GENERAL, Finding, Symptom
from gpu_runner.engine.diagnosis.case import Case, Sample, chunks, distinct, mostly
from gpu_runner.engine.diagnosis.places import place_of

_BITS = 3  # of a byte that are set in all that an output holds before a call
_ENOUGH_BITS = 12  # to exclude chance
_NATIVE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_STILL = 0.3  # of the elements that show no change, as most of what vanishes beside them
_FEW = 16  # elements: below, no share of them says much
_LAYOUTS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64)
_LOOKED_AT = 1 << 12  # elements
_COARSE = 2.0**-7  # relative: values that were rounded to any of these are as close


@dataclass(frozen=True)
class Held:
    """What a dtype's numbers look like that were made of what an output holds before a call.

    least: such a number's size at least, also after something ordinary was done to it; ordinary:
    what is expected must be below; canonical: NaN as devices make it.
    """

    least: float
    ordinary: float
    canonical: int = 0


_HELD = {
    torch.float16: Held(2.0**12, 2.0**10, 0x7FFF),
    torch.bfloat16: Held(2.0**90, 2.0**40, 0x7FFF),
    torch.float32: Held(2.0**90, 2.0**40, 0x7FFFFFFF),
    torch.float64: Held(2.0**760, 2.0**300),
    torch.int32: Held(2.0**16, 2.0**16),
    torch.int64: Held(2.0**40, 2.0**40),
}


def unset(case: Case) -> tuple[list[Finding], Tensor | None]:
    """What of the output was never set, and which wrong elements that explains."""
    sample = case.sample
    untouched = _untouched(case.actual.reshape(-1)[sample.at.to(case.actual.device)])
    if _is_ordinary(case, sample) and _was_accumulated(case, sample, untouched):
        return [Finding(symptom=Symptom.ACCUMULATED, text=GENERAL[Symptom.ACCUMULATED])], case.wrong
    size = case.actual.element_size()
    chance = 2.0 ** -(_BITS * size)
    count = int(untouched.sum().item())
    if count * _BITS * size < _ENOUGH_BITS or count < 8 * chance * sample.size:
        return [], None
    if not case.is_floating and size > 2:  # small negative integers have such bytes, too
        large = sample.have[untouched].abs() >= 2.0 ** (8 * size - 16)
        if not mostly(large, 0.9):
            return [], None
    mask = _all_untouched(case)
    if bool(mask.all().item()):
        return [Finding(symptom=Symptom.NEVER_WRITTEN, text=GENERAL[Symptom.NEVER_WRITTEN])], mask
    return [_partly(case, mask)], mask


def _partly(case: Case, mask: Tensor) -> Finding:
    place = place_of(mask)
    count = int(mask.sum().item())
    words = place.words if place else f"{count} of {case.elements} elements"
    text = f"not written: {words}, where the bytes from before the call still are: does the grid "
    text += "reach them?"
    return Finding(symptom=Symptom.PARTLY_WRITTEN, text=text)


def _untouched(values: Tensor) -> Tensor:
    """Which elements hold nothing but bytes as an output has them before a call, on the CPU."""
    size = values.element_size()
    bits = values.view(_NATIVE[size])
    pattern = int.from_bytes(bytes([HUGE] * size))
    return ((bits & pattern) == pattern).cpu()


def _all_untouched(case: Case) -> Tensor:
    flat, wrong = case.actual.reshape(-1), case.wrong.reshape(-1)
    found = torch.zeros_like(wrong)
    for low, high in chunks(flat.numel()):
        found[low:high] = wrong[low:high] & _untouched(flat[low:high]).to(wrong.device)
    return found.view(case.shape)


def _is_ordinary(case: Case, sample: Sample) -> bool:
    held = _HELD.get(case.actual.dtype)
    finite = sample.want[torch.isfinite(sample.want)]
    return held is not None and mostly(finite.abs() < held.ordinary, 1.0)


def _was_accumulated(case: Case, sample: Sample, untouched: Tensor) -> bool:
    """Nearly all is huge, of both signs, and some is no longer what it was before the call.

    Beside the huge numbers of the wider dtypes what is added vanishes. There it is told by NaN,
    which devices make anew.
    """
    held = _HELD[case.actual.dtype]
    if held.canonical and _is_made_anew(case, sample, held.canonical) and mostly(untouched, 1.0):
        return True
    if case.is_floating and not mostly(untouched, _STILL):  # huge for a reason of its own
        return False
    changed = ~untouched & torch.isfinite(sample.have)
    huge = sample.have.abs() >= held.least
    if not case.is_floating:
        huge &= _top_bytes_are_held(case, sample)
    if not mostly(untouched | huge | ~torch.isfinite(sample.have)):
        return False
    positive = (sample.have[changed] > 0).double()
    few = positive.numel() < max(_FEW, 0.01 * sample.size)
    return not few and 0.2 <= positive.mean().item() <= 0.8


def _top_bytes_are_held(case: Case, sample: Sample) -> Tensor:
    values = case.actual.reshape(-1)[sample.at.to(case.actual.device)].cpu()
    return (values >> (8 * values.element_size() - 8)) & HUGE == HUGE


def _is_made_anew(case: Case, sample: Sample, canonical: int) -> bool:
    nan = sample.at[torch.isnan(sample.have)].to(case.actual.device)
    if nan.numel() < 4:
        return False
    values = case.actual.reshape(-1)[nan]
    return bool((values.view(_NATIVE[values.element_size()]) == canonical).all().item())


def read_before_set(case: Case) -> Finding | None:
    """NaN as rarely, and as irregularly, as outputs hold it before a call; all else is right."""
    dtype = case.actual.dtype
    if not case.is_floating or case.elements < 1 << 14 or dtype not in _HELD:
        return None
    share = 1 / 4 if dtype is torch.float16 else 1 / 32  # of what outputs hold before a call
    at = case.sample
    is_rate = abs(case.wrong_elements / case.elements / share - 1) < 0.2
    if not is_rate or not mostly(torch.isnan(at.have), 1.0) or place_of(case.wrong) is not None:
        return None
    return Finding(symptom=Symptom.READ_BEFORE_SET, text=GENERAL[Symptom.READ_BEFORE_SET])


def other_dtype(case: Case) -> Finding | None:
    """The bytes, read as another dtype from the beginning, are what is expected."""
    own = case.actual.dtype
    for dtype in _LAYOUTS:
        if dtype is not own and own is not torch.bool and _is_laid_out_as(case, dtype):
            text = f"its bytes would be right as {_name(dtype)}, but the output is {_name(own)}"
            return Finding(symptom=Symptom.OTHER_DTYPE, text=text)
    return None


def _is_laid_out_as(case: Case, dtype: torch.dtype) -> bool:
    data = case.actual.reshape(-1).contiguous().view(torch.uint8)
    count = min(data.numel() // dtype.itemsize, case.elements)
    at = torch.arange(count) if count <= _LOOKED_AT else case.random(count, _LOOKED_AT)
    want, _ = case.wanted(at)
    wrong = case.wrong.reshape(-1)[at.to(case.wrong.device)].cpu() & torch.isfinite(want)
    at, want = at[wrong], want[wrong]
    places = (at.unsqueeze(1) * dtype.itemsize + torch.arange(dtype.itemsize)).to(data.device)
    have = data[places].cpu().view(dtype).reshape(-1).double()
    if have.numel() < 8 or distinct(want) < 4:
        return False
    if dtype.is_floating_point:
        near = (have - want).abs() <= _COARSE * want.abs()
    else:  # cut off to whole numbers, of which there must be some
        near = ((have - want).abs() < 1) & (have == have.round())
        if want.abs().max().item() < 4:
            return False
    return mostly(near)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

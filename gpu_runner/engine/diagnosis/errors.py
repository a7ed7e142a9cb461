"""Errors that tell of a precision, of another formula or of a sum that is not complete."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.data.symptom import GENERAL, Finding, Symptom
from gpu_runner.engine.diagnosis.case import Case, Sample, mostly, root_mean_square

_FEWEST = 64  # elements whose errors have a distribution
_MANY = 256  # chosen: of so many elements a smooth fit is no chance
_SLIGHTLY = 4.0  # times the bound
_BINS = 32  # chosen: enough to follow a smooth function
_IN_A_BIN = 16  # elements at least
_SMOOTH, _NOISY = 0.5, 0.2  # part of the errors' squares that the value explains
_SMALL = 0.05  # error over value, of what still is the same function
_ALL_ALIKE = 0.8  # of the values' squares, that of their mean: so alike are sums of one sign
_FEW_TERMS = 8  # chosen: of fewer, a function rather than a sum
_LONG, _PEAKED = 32, 6.0  # terms of a sum; kurtosis, which is 3 of normal errors
_NEIGHBOURS, _ALIKE = 8, 0.03  # of the errors' size; the nearest of eight is at 0.15 in noise
_ONE_TERM = 0.4  # of a sum's terms
_COMPARABLE = 0.1  # size of values that are right, in that of wrong ones
_BETTER = 0.01  # relative errors of right elements, in those of wrong ones
_SURE, _CHANCE = 8.0, 3.5  # standard errors


@dataclass(frozen=True)
class Kept:
    """Bits of a number that a narrower type keeps, and what they are called."""

    zeros: int  # bits at the end that are then zero
    relative: float  # error of what was cut off to that
    name: str


_KEPT: dict[torch.dtype, tuple[Kept, ...]] = {
    torch.float32: (Kept(16, 2.0**-7, "BF16"), Kept(13, 2.0**-10, "FP16 or TF32")),
    torch.float64: (
        Kept(45, 2.0**-7, "BF16"),
        Kept(42, 2.0**-10, "FP16 or TF32"),
        Kept(29, 2.0**-23, "float32"),
    ),
    torch.float16: (Kept(3, 2.0**-7, "BF16"),),
}
_NATIVE = {2: torch.int16, 4: torch.int32, 8: torch.int64}

_TF32_PRODUCTS = "about 2^-11 of the values, typical of products of TF32 or FP16 numbers"
_TF32_SUMS = (2.0**-13.5, 2.0**-10.2, _TF32_PRODUCTS)
_BF16_SUMS = (
    2.0**-10.2,
    2.0**-6.5,
    "about 2^-9 of the values, typical of products of BF16 numbers",
)
_FLOAT32_SUMS = (2.0**-28, 2.0**-19, "about 2^-24 of the values, typical of sums in float32")
_BANDS: dict[torch.dtype, tuple[tuple[float, float, str], ...]] = {
    torch.float32: (_TF32_SUMS, _BF16_SUMS),
    torch.float64: (_FLOAT32_SUMS, _TF32_SUMS, _BF16_SUMS),
}


def rounded(case: Case) -> Finding | None:
    """All values are numbers of a narrower type, and near what was expected."""
    sample = case.sample
    bits = case.actual.reshape(-1)[sample.at.to(case.actual.device)].cpu()
    used = sample.have != 0
    if int(used.sum().item()) < 8:
        return None
    bits, sample = bits[used], sample.of(used)
    error = (sample.have - sample.want).abs()
    for kept in _KEPT.get(case.actual.dtype, ()):
        ending = bits.view(_NATIVE[bits.element_size()]) & ((1 << kept.zeros) - 1)
        near = error <= kept.relative * sample.want.abs() + sample.allowed
        if mostly(ending == 0, 1.0) and mostly(near):
            text = (
                f"every wrong value has only the bits of {kept.name}: it was rounded to that dtype"
            )
            return Finding(symptom=Symptom.LOWER_PRECISION, text=text)
    return None


def slightly_off(case: Case) -> Finding | None:
    """Beyond the bound, but not by far."""
    if not case.is_floating or case.worst > _SLIGHTLY:
        return None
    text = (
        f"{case.worst:.3g} times the bound: a different order of summation, or one rounding"
        " too many"
    )
    if case.wrong_elements == 0:  # but the whole is
        text = GENERAL[Symptom.SLIGHTLY_OFF]
    return Finding(symptom=Symptom.SLIGHTLY_OFF, text=text)


@dataclass(frozen=True)
class Small:
    """Errors that are small beside the values: their part that grows with the value, and the rest.

    size: root mean square of the values; explained: part of the rest that follows from the value.
    """

    sample: Sample
    slope: float
    rest: Tensor
    size: float
    explained: float


def _small(case: Case) -> Small | None:
    sample = _finite(case.any_sample)
    sample = sample.of((sample.want != 0) | (sample.have != 0))  # zeros are right in any precision
    error = sample.have - sample.want
    size = root_mean_square(sample.want)
    if sample.size < _FEWEST or size == 0 or root_mean_square(error) > _SMALL * size:
        return None
    slope = (error / size * (sample.want / size)).mean().item()
    rest = error - slope * sample.want
    return Small(sample, slope, rest, size, _explained(rest, sample.want))


def other_formula(case: Case) -> Finding | None:
    """Small errors that are a smooth function of the value."""
    small = _small(case)
    if small is None or small.explained < _SMOOTH or small.sample.size < _MANY:
        return None
    if _explained(small.rest, small.sample.at) > _NOISY:
        return None  # as in a scan, whose error grows from place to place
    return Finding(symptom=Symptom.OTHER_FORMULA, text=GENERAL[Symptom.OTHER_FORMULA])


def lower_precision(case: Case) -> Finding | None:
    """Small errors everywhere, without a mean, as rounding makes them."""
    small = _small(case)
    if small is None or small.explained > _NOISY or not _is_noise(case, small.rest):
        return None
    if _lies_on_curves(small):  # that of a rounded input, or of one of which values come twice
        return None
    noise, size = root_mean_square(small.rest), small.size
    if case.epsilon > torch.finfo(torch.float32).eps:
        if case.epsilon <= noise / size < 32 * case.epsilon:
            name = str(case.actual.dtype).removeprefix("torch.")
            text = (
                f"errors of several roundings to {name}: keep sums and intermediate steps in"
                " float32"
            )
            return Finding(symptom=Symptom.LOWER_PRECISION, text=text)
        return None
    # Where terms have one sign a sum grows with their number, and its error with the root of it.
    coherent = small.sample.want.mean().item() ** 2 > _ALL_ALIKE * size**2
    part = max(abs(small.slope), noise / size * (math.sqrt(case.length) if coherent else 1.0))
    if part * math.sqrt(case.length) > _ONE_TERM and case.length >= _FEW_TERMS:
        return None  # as large as if a term were missing
    for low, high, words in _BANDS.get(case.actual.dtype, ()):
        if low <= part < high:
            # What a function of one element makes of a rounded input depends on the function.
            sums = case.length >= _FEW_TERMS
            text = f"errors of {words}" if sums else GENERAL[Symptom.LOWER_PRECISION]
            return Finding(symptom=Symptom.LOWER_PRECISION, text=text)
    return None


def _is_noise(case: Case, error: Tensor) -> bool:
    size = root_mean_square(error)
    if (
        size == 0
        or error.abs().median().item() < 0.1 * size
        or abs(error.mean().item()) > 0.3 * size
    ):
        return False
    # Of many roundings the sum is normal. What one term of a long sum leaves is not, mostly.
    return case.length < _LONG or (error / size).pow(4).mean().item() < _PEAKED


def _lies_on_curves(small: Small) -> bool:
    """Whether each error is found again at one of the next values."""
    error = small.rest[small.sample.want.argsort()]
    rows = error.unfold(0, _NEIGHBOURS + 1, 1)
    nearest = (rows[:, 1:] - rows[:, :1]).abs().amin(1).median().item()
    return nearest < _ALIKE * root_mean_square(error)


def _explained(error: Tensor, value: Tensor) -> float:
    """Part of the errors' squares that the mean error of like values explains."""
    bins = min(_BINS, error.numel() // _IN_A_BIN)
    total = error.square().sum().item()
    if bins < 4 or total == 0:
        return 0.0
    ordered = error[value.argsort()][: bins * (error.numel() // bins)].view(bins, -1)
    between = ordered.mean(1).square().sum().item() * ordered.shape[1]
    return between / total


def part_missing(case: Case) -> Finding | None:
    """What is missing has nothing to do with what is there, but with what was expected."""
    sample = _finite(case.sample)
    if sample.size < _MANY or case.wrong_elements < case.elements / 2:
        return None
    have, want = sample.have - sample.have.mean(), sample.want - sample.want.mean()
    missing = want - have
    if min(_score(missing, want), _score(have, want)) < _SURE:
        return None
    if abs(_score(missing, have)) > _CHANCE:
        return None
    share = (have @ want / (want @ want)).item()
    if not 0.02 <= share <= 0.999 or mostly(missing.abs() <= sample.allowed, 0.5):
        return None
    text = (
        f"as if only {share:.0%} of each sum were there: a loop that ends early, or a term left out"
    )
    return Finding(symptom=Symptom.PART_MISSING, text=text)


def _score(one: Tensor, other: Tensor) -> float:
    """Their covariance over its standard error, were they independent."""
    products = one * other
    error = products.square().sum().sqrt().item()
    return products.sum().item() / error if error > 0 else math.inf


def by_size(case: Case) -> Finding | None:
    """Wrong only where large values are expected, or those of one sign; zeros aside."""
    sample = _finite(case.any_sample)
    sample = sample.of(sample.want != 0)
    wrong = case.wrong.reshape(-1)[sample.at.to(case.wrong.device)].cpu()
    if int(wrong.sum().item()) < 16 or int((~wrong).sum().item()) < _FEWEST:
        return None
    size = sample.want.abs()
    error = (sample.have - sample.want).abs() / size.clamp(min=case.size * 1e-3)
    # A bound forgives small values more, so that those which are right must be really so.
    better = error[~wrong].median() < _BETTER * error[wrong].median()
    comparable = size[~wrong].median() > _COMPARABLE * size[wrong].median()
    if better and comparable and size[wrong].quantile(0.02) > size[~wrong].quantile(0.98):
        return Finding(symptom=Symptom.LARGE_VALUES, text=GENERAL[Symptom.LARGE_VALUES])
    for name, holds in (("negative", sample.want < 0), ("positive", sample.want > 0)):
        if mostly(holds[wrong], 1.0) and mostly(wrong[holds], 0.9) and not mostly(holds, 0.9):
            text = f"wrong only where {name} values are expected: a branch on the sign, or a clamp"
            return Finding(symptom=Symptom.ONE_SIGN, text=text)
    return None


def _finite(sample: Sample) -> Sample:
    return sample.of(torch.isfinite(sample.have) & torch.isfinite(sample.want))

"""Judge an output against the expected one: pure functions over tensors, in float64, in chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.data.task import NEGLIGIBLE, Task, Workload

_CHUNK_CPU = 1 << 14  # elements a thread: temporaries of a chunk stay in the cache
_SIZED = 1e-8  # as FlashInfer Trace's max_relative_error has it. Source: flashinfer-bench 0.1.2
_CHUNK_CUDA = 1 << 23  # elements: 64 MiB for a temporary in float64


class ScaleError(ValueError):
    """A task's error scale is not a finite number where the expected output is one."""


@dataclass(frozen=True)
class Limit:
    """How far an output may be off, as multiples of its dtype's machine epsilon.

    `factor` is `Tolerance.constant + Tolerance.growth * sqrt(L)`.
    """

    factor: float

    @classmethod
    def of(cls, constant: float, growth: float, length: float) -> Limit:
        """The limit of a `Tolerance` for sums of `length` terms."""
        return cls(constant + growth * math.sqrt(length))


def limit_of(task: Task, workload: Workload) -> Limit:
    tolerance = task.tolerance
    return Limit.of(tolerance.constant, tolerance.growth, task.reduction_length(workload))


@dataclass(frozen=True)
class WrongElement:
    """The first wrong element in row-major order, and how many there are.

    `index` is empty, and expected, actual and bound are None, where only the whole is off.
    """

    reason: str
    index: tuple[int, ...]
    expected: float | None
    actual: float | None
    bound: float | None
    wrong_elements: int
    elements: int


@dataclass(frozen=True)
class Comparison:
    """Largest scaled error (1 and below passes), Frobenius error, and what is wrong if any is.

    `scaled` is inf where a NaN, an Inf or an exact value is wrong. absolute, pointwise: the largest
    error of a finite element, and the largest over the element's size plus `_SIZED`; None if no
    elements were compared.
    """

    scaled: float
    relative: float
    mismatch: WrongElement | None
    absolute: float | None = 0.0
    pointwise: float | None = 0.0


def compare(
    actual: Tensor, expected: Tensor, limit: Limit, scale: Tensor | None = None
) -> Comparison:
    """Compare an output of the kernel's dtype with the expected one of the same shape and device.

    `expected` is float64, or an integer or bool where the output is one. Integers and bools must
    be equal. NaN must stand where `expected`, rounded to the output's dtype, has NaN, and so for
    either infinity. Elsewhere `|actual - expected| <= eps * limit.factor * scale`, where `scale`
    defaults to `|expected| + rms(expected)` and is never below the dtype's smallest normal number.
    The bound is never below `NEGLIGIBLE`, nor below as much of the largest magnitude in `expected`
    if that is above 1: exponentials may underflow. Under the default, the
    Frobenius norm of the error over that of `expected` must not exceed `eps * limit.factor` either,
    unless `expected` is as small as the least bound. Raises `ScaleError` on a scale that is not
    finite.
    """
    if actual.shape != expected.shape:
        raise ValueError(f"shapes differ: {tuple(actual.shape)} and {tuple(expected.shape)}")
    flat, flat_expected = _as_bytes(actual).reshape(-1), expected.reshape(-1)
    if flat.numel() == 0:
        return Comparison(0.0, 0.0, None)
    judge = _judge(flat, flat_expected, limit, scale)
    tally = _Tally(flat.device, judge.unit)
    for low, high in _chunks(flat):
        tally.add(low, judge.chunk(flat[low:high], flat_expected[low:high], low, high))
    return _conclude(tally, judge, flat, flat_expected, tuple(actual.shape))


def wrong_elements(
    actual: Tensor, expected: Tensor, limit: Limit, scale: Tensor | None = None
) -> Tensor:
    """Which elements `compare` finds wrong: a mask of the output's shape. Raises as it does."""
    flat, flat_expected = _as_bytes(actual).reshape(-1), expected.reshape(-1)
    wrong = torch.zeros(flat.shape, dtype=torch.bool, device=flat.device)
    if flat.numel() > 0:
        judge = _judge(flat, flat_expected, limit, scale)
        for low, high in _chunks(flat):
            chunk = judge.chunk(flat[low:high], flat_expected[low:high], low, high)
            wrong[low:high] = ~chunk.right
    return wrong.view(actual.shape)


def _as_bytes(tensor: Tensor) -> Tensor:
    """Truth values as the bytes that were written, of which 0 and 1 alone are any."""
    return tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor


def _judge(actual: Tensor, expected: Tensor, limit: Limit, scale: Tensor | None) -> _Exact | _Close:
    if actual.dtype.is_floating_point:
        return _Close(expected, actual.dtype, limit, scale)
    return _Exact()


@dataclass(frozen=True)
class _Chunk:
    """Of each element: is it right, error over bound, |error| and |expected| over the norm's unit.

    The two last hold zeros at special values.
    """

    right: Tensor
    scaled: Tensor
    error: Tensor
    size: Tensor


class _Exact:
    """Integers and bools: equal or not."""

    relative_limit: float | None = None
    tiny = False
    unit = 1.0

    def chunk(self, actual: Tensor, expected: Tensor, low: int, high: int) -> _Chunk:
        wide = torch.float64 if expected.dtype.is_floating_point else torch.int64
        right = actual.to(wide) == expected.to(wide)
        error = (actual.double() - expected.double()).abs()
        scaled = torch.zeros_like(error).masked_fill_(~right, math.inf)
        return _Chunk(right, scaled, error, expected.double().abs())

    def bound(self, at: int) -> float:
        return 0.0


class _Close:
    """Floating-point numbers: within a bound."""

    def __init__(
        self, expected: Tensor, dtype: torch.dtype, limit: Limit, scale: Tensor | None
    ) -> None:
        info = torch.finfo(dtype)
        self._dtype = dtype
        self._factor = info.eps * limit.factor
        self._least = info.smallest_normal
        self._scale = None if scale is None else scale.reshape(-1)
        self._expected = expected
        self.unit, self._rms = _magnitude(expected, dtype)
        negligible = NEGLIGIBLE.get(str(dtype).removeprefix("torch."), 0.0)
        self._floor = negligible * max(1.0, self.unit)
        self.relative_limit = self._factor if scale is None else None
        self.tiny = self._rms <= max(self._least, self._floor)

    def chunk(self, actual: Tensor, expected: Tensor, low: int, high: int) -> _Chunk:
        seen, wanted = actual.double(), expected.double()
        rounded = wanted.to(self._dtype).double()
        special = ~torch.isfinite(rounded)
        bound = self._bounds(wanted, special, low, high)
        error = (seen - wanted).abs_()
        same = (seen == rounded) | (torch.isnan(seen) & torch.isnan(rounded))
        right = torch.where(special, same, error <= bound)
        scaled = (error / bound).nan_to_num_(nan=math.inf, posinf=math.inf)
        scaled = scaled.masked_fill_(special, 0.0).masked_fill_(special & ~same, math.inf)
        error = (error / self.unit).nan_to_num_(nan=math.inf, posinf=math.inf)
        size = (wanted / self.unit).masked_fill_(special, 0.0)
        return _Chunk(right, scaled, error.masked_fill_(special, 0.0), size)

    def bound(self, at: int) -> float:
        wanted = self._expected[at : at + 1].double()
        special = ~torch.isfinite(wanted.to(self._dtype).double())
        return 0.0 if special.item() else self._bounds(wanted, special, at, at + 1).item()

    def _bounds(self, wanted: Tensor, special: Tensor, low: int, high: int) -> Tensor:
        if self._scale is None:
            scale = wanted.abs() + self._rms
        else:
            scale = self._scale[low:high].double()
            if not (torch.isfinite(scale) | special).all():
                raise ScaleError("the task's error scale is NaN or infinite for a finite output")
        bound = scale.clamp(min=self._least).mul_(self._factor)  # a copy: the scale is the task's
        return bound.clamp_(min=self._floor)


class _Tally:
    """Sums over chunks, kept on the device so that no chunk waits for another."""

    def __init__(self, device: torch.device, unit: float) -> None:
        """unit: of the errors and sizes in the chunks."""

        def number(value: float, dtype: torch.dtype) -> Tensor:
            return torch.tensor(value, dtype=dtype, device=device)

        self._none = torch.iinfo(torch.int64).max
        self.scaled = number(0.0, torch.float64)
        self.error_squares = number(0.0, torch.float64)
        self.size_squares = number(0.0, torch.float64)
        self.wrong = number(0, torch.int64)
        self._unit = unit
        self._absolute = self._pointwise = number(0.0, torch.float64)
        self.first = number(self._none, torch.int64)

    def add(self, low: int, chunk: _Chunk) -> None:
        wrong = ~chunk.right
        self.scaled = torch.maximum(self.scaled, chunk.scaled.max())
        self.error_squares = self.error_squares + chunk.error.square().sum()
        self.size_squares = self.size_squares + chunk.size.square().sum()
        self.wrong = self.wrong + wrong.sum()
        self._absolute = torch.maximum(self._absolute, chunk.error.max())
        sized = chunk.error / chunk.size.abs().add_(_SIZED / self._unit)
        self._pointwise = torch.maximum(self._pointwise, sized.max())
        first = torch.where(wrong.any(), wrong.to(torch.uint8).argmax() + low, self._none)
        self.first = torch.minimum(self.first, first)

    def largest(self) -> tuple[float, float]:
        """`Comparison.absolute` and `pointwise`."""
        return self._absolute.item() * self._unit, self._pointwise.item()

    def relative(self) -> float:
        error, size = self.error_squares.item(), self.size_squares.item()
        if math.isnan(error) or error == math.inf:
            return math.inf
        if error == 0:
            return 0.0
        return math.sqrt(error) / math.sqrt(size) if size > 0 else math.inf


def _conclude(
    tally: _Tally, judge: _Exact | _Close, actual: Tensor, expected: Tensor, shape: tuple[int, ...]
) -> Comparison:
    scaled, relative, wrong = tally.scaled.item(), tally.relative(), int(tally.wrong.item())
    elements = actual.numel()
    if wrong == 0:
        if judge.relative_limit is None or relative <= judge.relative_limit or judge.tiny:
            return Comparison(scaled, relative, None, *tally.largest())
        reason = (
            f"the whole output is off by {relative:.2e} of its norm, "
            f"bound {judge.relative_limit:.2e}"
        )
        whole = WrongElement(reason, (), None, None, None, 0, elements)
        return Comparison(scaled, relative, whole, *tally.largest())
    at = int(tally.first.item())
    want, have, bound = expected[at].item(), actual[at].item(), judge.bound(at)
    if isinstance(want, bool) and have in (0, 1):
        have = bool(have)
    reason = _reason(have, want, bound)
    mismatch = WrongElement(
        reason, unravelled(at, shape), float(want), float(have), bound, wrong, elements
    )
    if not math.isfinite(float(have)) or not math.isfinite(float(want)):
        relative = math.inf
    return Comparison(scaled, relative, mismatch, *tally.largest())


def _reason(have: float, want: float, bound: float) -> str:
    if isinstance(have, float) and math.isfinite(have) and math.isfinite(want) and bound > 0:
        return f"off by {abs(have - want):.2e}, bound {bound:.2e}"
    return f"{_text(have)} where {_text(want)} was expected"


def _text(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "NaN" if math.isnan(value) else f"{value:.6g}"


def _magnitude(expected: Tensor, dtype: torch.dtype) -> tuple[float, float]:
    """Largest magnitude (at least the smallest normal number) and root mean square of `expected`.

    Over the elements that are finite in `dtype`; the squares are taken of values over the
    largest, so that they cannot overflow.
    """
    largest = torch.zeros((), dtype=torch.float64, device=expected.device)
    for low, high in _chunks(expected):
        largest = torch.maximum(largest, _finite(expected[low:high], dtype)[0].abs_().max())
    unit = max(largest.item(), torch.finfo(dtype).smallest_normal)
    squares, count = torch.zeros_like(largest), torch.zeros_like(largest)
    for low, high in _chunks(expected):
        values, number = _finite(expected[low:high], dtype)
        squares = squares + (values / unit).square_().sum()
        count = count + number
    return unit, unit * math.sqrt(squares.item() / max(count.item(), 1.0))


def _finite(expected: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    finite = torch.isfinite(expected.to(dtype).double())
    return expected.double().masked_fill(~finite, 0.0), finite.sum()


def _chunks(flat: Tensor) -> Iterator[tuple[int, int]]:
    step = _CHUNK_CUDA if flat.is_cuda else _CHUNK_CPU * torch.get_num_threads()
    for low in range(0, flat.numel(), step):
        yield low, min(low + step, flat.numel())


def unravelled(at: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the element at place `at` of a contiguous tensor."""
    index: list[int] = []
    for size in reversed(shape):
        at, position = divmod(at, size)
        index.append(position)
    return tuple(reversed(index))

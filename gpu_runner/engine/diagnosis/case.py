"""A wrong output and samples of it, on which what it looks like is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

SAMPLE = 1 << 13
"""Elements of a sample at most: their work takes milliseconds."""

_CHUNK = 1 << 22  # elements that are looked through at once


@dataclass(frozen=True)
class Sample:
    """Elements at some flat positions, on the CPU: what there is, is wanted and may be off.

    have and want are float64, want as it was before it was rounded to the output's dtype.
    """

    at: Tensor
    have: Tensor
    want: Tensor
    allowed: Tensor

    def of(self, which: Tensor) -> Sample:
        """Those elements for which `which` holds."""
        return Sample(self.at[which], self.have[which], self.want[which], self.allowed[which])

    @property
    def size(self) -> int:
        return self.at.numel()


@dataclass(frozen=True)
class Case:
    """An output, the expected one, and which of its elements are wrong: tensors of one shape.

    expected: float64, or integers where the output holds such. factor: `Limit.factor`, and scale:
    that of the task, as for `compare`. worst: largest error over its bound. length: terms of a sum.
    """

    actual: Tensor
    expected: Tensor
    wrong: Tensor
    factor: float
    scale: Tensor | None = None
    worst: float = math.inf
    length: float = 1.0
    _generator: torch.Generator = field(
        default_factory=lambda: torch.Generator().manual_seed(1), repr=False
    )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.actual.shape)

    @property
    def elements(self) -> int:
        return self.actual.numel()

    @cached_property
    def wrong_elements(self) -> int:
        return int(self.wrong.count_nonzero().item())

    @property
    def is_floating(self) -> bool:
        """Whether the output holds floating-point numbers."""
        return self.actual.dtype.is_floating_point

    @property
    def epsilon(self) -> float:
        """The dtype's machine epsilon; 0 for integers, which are exact."""
        return torch.finfo(self.actual.dtype).eps if self.is_floating else 0.0

    @cached_property
    def sample(self) -> Sample:
        """Wrong elements, all of them or a random choice."""
        return self.at(positions(self.wrong.reshape(-1), self._generator))

    @cached_property
    def any_sample(self) -> Sample:
        """Elements whether right or wrong, all of them or a random choice."""
        if self.elements <= SAMPLE:
            return self.at(torch.arange(self.elements))
        return self.at(self.random(self.elements, SAMPLE))

    @cached_property
    def size(self) -> float:
        """Root mean square of the finite expected values, from a sample."""
        return root_mean_square(self.any_sample_of_expected)

    @cached_property
    def any_sample_of_expected(self) -> Tensor:
        """Finite expected values at random places."""
        flat = self.expected.reshape(-1)
        count = min(self.elements, SAMPLE)
        at = torch.arange(count) if count == self.elements else self.random(self.elements, count)
        values = flat[at.to(flat.device)].double().cpu()
        return values[torch.isfinite(values)]

    def random(self, below: int, count: int) -> Tensor:
        """Random flat positions, the same each time."""
        return torch.randint(below, (count,), generator=self._generator)

    def at(self, at: Tensor) -> Sample:
        """The elements at these flat positions."""
        want, allowed = self.wanted(at)
        return Sample(at, self.have(at), want, allowed)

    def have(self, at: Tensor) -> Tensor:
        """What the output holds at these flat positions, in float64."""
        return self.actual.reshape(-1)[at.to(self.actual.device)].double().cpu()

    def wanted(self, at: Tensor) -> tuple[Tensor, Tensor]:
        """What is expected at these flat positions, and how far it may be off."""
        there = at.to(self.expected.device)
        want = self.expected.reshape(-1)[there].double().cpu()
        if not self.is_floating:
            return want, torch.zeros_like(want)
        if self.scale is None:
            scale = want.abs() + self.size
        else:
            scale = self.scale.reshape(-1)[there].double().cpu()
        least = torch.finfo(self.actual.dtype).smallest_normal
        return want, self.epsilon * self.factor * scale.clamp(min=least)

    def without(self, explained: Tensor) -> Case:
        """The same, with the elements of this mask no longer among the wrong ones."""
        return replace(self, wrong=self.wrong & ~explained)

    def special(self) -> Tensor | None:
        """Which wrong elements are NaN or infinite, or ought to be; None if none is seen."""
        want = self.sample.want.to(self.actual.dtype)
        if torch.isfinite(self.sample.have).all() and torch.isfinite(want).all():
            return None
        found = torch.zeros_like(self.wrong).reshape(-1)
        actual, expected = self.actual.reshape(-1), self.expected.reshape(-1)
        for low, high in chunks(self.elements):
            wanted = expected[low:high].to(self.actual.dtype)
            found[low:high] = ~(torch.isfinite(actual[low:high]) & torch.isfinite(wanted))
        return found.view(self.shape) & self.wrong


def positions(mask: Tensor, generator: torch.Generator) -> Tensor:
    """Flat positions at which a flat mask holds, in order: all, or about `SAMPLE` at random."""
    if mask.numel() > _CHUNK:  # where it holds for many, most need no look
        at = torch.randint(mask.numel(), (4 * SAMPLE,), generator=generator).sort().values
        at = at[mask[at.to(mask.device)].cpu()]
        if at.numel() >= SAMPLE // 2:
            return at
    found = []
    share = math.ceil(SAMPLE / max(1, math.ceil(mask.numel() / _CHUNK)))
    for low, high in chunks(mask.numel()):
        at = mask[low:high].nonzero().reshape(-1).cpu() + low
        if at.numel() > share:
            at = at[torch.randint(at.numel(), (share,), generator=generator).sort().values]
        found.append(at)
    return torch.cat(found) if found else torch.empty(0, dtype=torch.int64)


def chunks(count: int) -> Iterator[tuple[int, int]]:
    """Ranges that are looked through one by one."""
    for low in range(0, count, _CHUNK):
        yield low, min(low + _CHUNK, count)


def root_mean_square(values: Tensor) -> float:
    """Of values that may be as large as float64 holds; 0 if there are none."""
    largest = values.abs().max().item() if values.numel() else 0.0
    if largest == 0:
        return 0.0
    return largest * math.sqrt((values / largest).square().mean().item())


def distinct(values: Tensor) -> int:
    """How many values there are, each counted once."""
    return int((values.sort().values.diff() != 0).sum().item()) + 1 if values.numel() else 0


def mostly(holds: Tensor, share: float = 0.98) -> bool:
    """Whether something holds for that share of the elements at least, of which there are some."""
    return holds.numel() > 0 and holds.double().mean().item() >= share

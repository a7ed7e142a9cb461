"""Orders in which kernels add float32 terms: along the last dimension of a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Sum = Callable[[Tensor], Tensor]

BLOCK = 256  # terms that a thread block, or a tile in the cache, adds before it moves on
LANES = 8  # accumulators of a vector register
LONGEST: Mapping[str, int] = {"cpu": 1 << 20, "cuda": 1 << 16}
"""Terms of one float32 accumulator, by device: near 2^24 it stands still, so longer sums take
several. On a GPU thousands of threads share a long sum."""


@dataclass(frozen=True)
class Order:
    """One way of adding up.

    terms: the sum over the last dimension. scan: all sums up to there, where there is such an
    order. fused: products are added without being rounded before.
    """

    terms: Sum
    scan: Callable[[Tensor], Tensor] | None = None
    fused: bool = False

    def products(self, first: Tensor, second: Tensor) -> Tensor:
        """The inner products of two tensors that broadcast, over the last dimension."""
        if self.fused:
            return self.terms(first.double() * second.double())  # exact: 48 bits of 53
        return self.terms(first * second)


def serial(terms: Tensor) -> Tensor:
    """One after the other into one number."""
    return serial_scan(terms)[..., -1] if terms.shape[-1] else terms.sum(-1)


def serial_scan(terms: Tensor) -> Tensor:
    """The same, with every sum on the way; PyTorch's own adds in float64, or in parallel."""
    running = terms.detach().cpu().numpy().cumsum(axis=-1, dtype="float32")
    return torch.from_numpy(running).to(terms.device)


def one_by_one(terms: Tensor) -> Tensor:
    """One after the other into one number, or into as few as take `LONGEST` terms each."""
    longest = LONGEST[terms.device.type]
    if terms.shape[-1] <= longest:
        return serial(terms)
    return serial(serial(_split(terms, longest)))


def one_by_one_scan(terms: Tensor) -> Tensor:
    """The same, with every sum on the way."""
    longest = LONGEST[terms.device.type]
    return serial_scan(terms) if terms.shape[-1] <= longest else _scan_of_parts(terms, longest)


def from_the_end(terms: Tensor) -> Tensor:
    """The same, the last one first."""
    return one_by_one(terms.flip(-1))


def pairwise(terms: Tensor) -> Tensor:
    """As a balanced tree of neighbours."""
    if not terms.shape[-1]:
        return terms.sum(-1)
    while terms.shape[-1] > 1:
        terms = F.pad(terms, (0, terms.shape[-1] % 2))
        terms = terms[..., ::2] + terms[..., 1::2]
    return terms[..., 0]


def doubling_scan(terms: Tensor) -> Tensor:
    """All sums up to there, in steps of 1, 2, 4, ... places, as Hillis and Steele have it."""
    step = 1
    while step < terms.shape[-1]:
        terms = terms + F.pad(terms[..., :-step], (step, 0))
        step *= 2
    return terms


def in_blocks(terms: Tensor) -> Tensor:
    """Blocks one by one, and then the blocks' sums one by one."""
    return serial(serial(_split(terms, BLOCK)))


def blocked_scan(terms: Tensor) -> Tensor:
    """All sums up to there: within each block, and what the blocks before it carry."""
    return _scan_of_parts(terms, BLOCK)


def _scan_of_parts(terms: Tensor, size: int) -> Tensor:
    inner = serial_scan(_split(terms, size))
    carried = F.pad(serial_scan(inner[..., -1])[..., :-1], (1, 0))
    return (inner + carried[..., None]).flatten(-2)[..., : terms.shape[-1]]


def in_lanes(terms: Tensor) -> Tensor:
    """Every eighth into one of eight accumulators, and a tree over these."""
    return pairwise(one_by_one(_split(terms, LANES).transpose(-1, -2)))


def lanes_scan(terms: Tensor) -> Tensor:
    """All sums up to there: each thread adds to its eight what it gets by taking them away again.

    The sum before a thread's own elements is the one behind them less their sum, in most kernels.
    """
    inner = serial_scan(_split(terms, LANES))
    own = inner[..., -1]
    before = doubling_scan(own) - own
    return (inner + before[..., None]).flatten(-2)[..., : terms.shape[-1]]


def compensated(terms: Tensor) -> Tensor:
    """Kahan's sum, in lanes: the rounding of each addition is carried into the next."""
    steps = _steps(terms.float())
    total = torch.zeros(steps.shape[1:], device=terms.device)
    lost = total
    for term in steps:
        wanted = term - lost
        found = total + wanted
        total, lost = found, (found - total) - wanted
    return pairwise(total - lost)


def rounded_once(terms: Tensor) -> Tensor:
    """Exact products one by one, in lanes: one rounding for a product and its addition."""
    steps = _steps(terms.double())
    total = torch.zeros(steps.shape[1:], device=terms.device)
    for term in steps:
        total = (total.double() + term).float()
    return pairwise(total)


def _split(terms: Tensor, size: int) -> Tensor:
    """The last dimension as (parts, size), zeros behind its end."""
    padded = F.pad(terms, (0, -terms.shape[-1] % size))
    return padded.reshape(*terms.shape[:-1], padded.shape[-1] // size, size)


MOST_STEPS = 512
"""Additions one after the other that are worth a loop in Python."""


def _steps(terms: Tensor) -> Tensor:
    """(steps, ..., lanes): one lane for short sums, else as few as leave `MOST_STEPS` steps."""
    lanes = max(1, math.ceil(terms.shape[-1] / MOST_STEPS))
    return _split(terms, lanes).movedim(-2, 0).contiguous()


ORDERS: Mapping[str, Order] = {
    "sums one by one": Order(one_by_one, one_by_one_scan),
    "sums one by one from the end": Order(from_the_end),
    "sums in pairs": Order(pairwise, doubling_scan),
    "sums in blocks": Order(in_blocks, blocked_scan),
    "sums in lanes": Order(in_lanes, lanes_scan),
    "compensated sums": Order(compensated),
    "fused multiply-adds": Order(rounded_once, fused=True),
}

"""Sums, products and convolutions of a reference, each as terms that an order adds up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.engine.soundness.families.sums import Order
from gpu_runner.engine.soundness.operations import Step, argument

AT_ONCE = 1 << 19
"""Terms that are added up in an order of their own at most: where there are more, some results are
recomputed, spread over all, and the others stay as a library has them."""

Instead = Callable[[Step], object]
"""A step's result in some other way; None leaves it as it is."""
Convolve = Callable[[Tensor, Tensor, tuple[int, ...]], Tensor | None]
"""The correlation of (batch, in, ...) and (out, in, ...) with strides, without padding."""


def resummed(order: Order) -> Instead:
    """Every sum of a reference, also those in products, in that order."""

    def instead(step: Step) -> object:
        result = step.result[0] if isinstance(step.result, tuple) else step.result
        if not isinstance(result, Tensor) or result.dtype is not torch.float32:
            return None
        if step.name in _SUMS:
            return _SUMS[step.name](step, order)
        return convolved(lambda *given: _unfolded(order, *given))(step)

    return instead


def convolved(convolve: Convolve) -> Instead:
    """Every convolution, and its gradients, by way of that function."""

    def instead(step: Step) -> object:
        if step.name == "convolution":
            return _convolution(step, convolve)
        return _gradients(step, convolve) if step.name == "convolution_backward" else None

    return instead


def freedom(step: Step, size: int) -> float:
    """What a variance of `size` terms divides their squares by."""
    correction, unbiased = argument(step, "correction"), argument(step, "unbiased")
    if correction is None:
        correction = 0 if unbiased is False else 1
    return float(size - correction)


def reduced(step: Step) -> list[int]:
    """The dimensions that a reduction runs over, from 0; all where it names none."""
    given = argument(step, "dim")
    rank = step.args[0].dim()
    dims = [given] if isinstance(given, int) else list(given or range(rank))
    return [dim % max(rank, 1) for dim in dims]


def at_the_end(value: Tensor, dims: list[int]) -> Tensor:
    """`value` as (rows, terms): these dimensions as one behind all others as another."""
    others = [dim for dim in range(value.dim()) if dim not in dims]
    rows = math.prod(value.shape[dim] for dim in others)
    moved = value.permute(*others, *dims) if value.dim() else value
    return moved.reshape(rows, value.numel() // max(rows, 1))


def _sum(step: Step, order: Order) -> Tensor:
    terms = at_the_end(step.args[0], reduced(step))
    some = _spread(len(terms), AT_ONCE // max(terms.shape[-1], 1))
    found = order.terms(terms[some].to(step.result.dtype))
    total: Tensor = step.result.flatten().clone()
    total[some] = found / terms.shape[-1] if step.name == "mean" else found
    return total.reshape(step.result.shape)


def _cumsum(step: Step, order: Order) -> Tensor | None:
    dim = step.args[1]
    if order.scan is None or not step.args[0].dim():
        return None
    return order.scan(step.args[0].to(step.result.dtype).movedim(dim, -1)).movedim(-1, dim)


def _variance(step: Step, order: Order) -> tuple[Tensor, Tensor]:
    """In two passes: the squares are those of distances from the mean."""
    terms = at_the_end(step.args[0], reduced(step))
    some = _spread(len(terms), AT_ONCE // max(terms.shape[-1], 1))
    variance, mean = (part.flatten().clone() for part in step.result)
    mean[some] = order.terms(terms[some]) / terms.shape[-1]
    left = terms[some] - mean[some, None]
    variance[some] = order.products(left, left) / freedom(step, terms.shape[-1])
    return variance.reshape(step.result[0].shape), mean.reshape(step.result[1].shape)


def _product(step: Step, order: Order) -> Tensor:
    """Of matrices and vectors, also of a sparse one with a dense one."""
    first, second = step.args[0], step.args[1]
    if first.layout is not torch.strided:
        return _sparse(first, second, step.result, order)
    columns = second.t() if second.dim() == 2 else second[None]
    rows = first if first.dim() == 2 else first[None]
    known = step.result.reshape(len(rows), len(columns))
    return inner_products(rows, columns, known, order).reshape(step.result.shape)


def _batched(step: Step, order: Order) -> Tensor:
    first, second = step.args
    result: Tensor = step.result.clone()
    budget = AT_ONCE // max(len(first), 1)
    for left, right, known in zip(first, second, result, strict=True):
        known.copy_(inner_products(left, right.t(), known, order, budget))
    return result


def inner_products(
    rows: Tensor, columns: Tensor, known: Tensor, order: Order, budget: int = AT_ONCE
) -> Tensor:
    """Those of (m, k) with (n, k), of which `known` (m, n) has what does not fit the budget."""
    length = max(rows.shape[1], 1)
    some_columns = _spread(len(columns), budget // length)
    some_rows = _spread(len(rows), budget // (length * max(len(some_columns), 1)))
    found = known.clone()
    left, right = rows[some_rows], columns[some_columns]
    found[some_rows[:, None], some_columns] = order.products(left[:, None], right[None])
    return found


def _spread(count: int, most: int) -> Tensor:
    """Up to `most` places of `count`, at least one: at odd distances, for rows come in fours."""
    step = -(-count // max(most, 1))
    return torch.arange(0, count, step | 1)


def _sparse(matrix: Tensor, dense: Tensor, known: Tensor, order: Order) -> Tensor:
    if matrix.layout is torch.sparse_csr:
        lengths = matrix.crow_indices().diff()
        row = torch.repeat_interleave(torch.arange(len(lengths), device=dense.device), lengths)
        column, values = matrix.col_indices(), matrix.values()
    else:
        row, column, values = *matrix._indices(), matrix._values()  # distinct, in any order
    columns = dense.reshape(len(dense), -1)

    def factors(at: Tensor) -> tuple[Tensor, ...]:
        return values[at][..., None], columns[column[at].long()]

    found = by_rows(row, known.reshape(len(known), -1), factors, order)
    return found.reshape(known.shape)


def by_rows(
    row: Tensor, known: Tensor, factors: Callable[[Tensor], tuple[Tensor, ...]], order: Order
) -> Tensor:
    """Sums (count, width) of the terms that belong to each row, in their order.

    `known` has what a library found. `factors` gives those of the terms at some places, of any
    shape, with a last dimension of `width` or 1. Rows of about the same length are added up
    together, zeros behind the shorter ones, which change no sum.
    """
    total, place = known.clone(), torch.argsort(row, stable=True)
    lengths = torch.bincount(row, minlength=len(known))
    begin = lengths.cumsum(0) - lengths
    every = len(place) * known.shape[1] // AT_ONCE + 1
    some = _spread(len(known), -(-len(known) // every)).to(row.device)
    for longest in _powers_of_two(int(lengths[some].max())):
        chosen = some[(lengths[some] <= longest) & (lengths[some] > longest // 2)]
        within = torch.arange(longest, device=row.device)
        held = within < lengths[chosen, None]
        at = place[(begin[chosen, None] + within).clamp(max=len(place) - 1)]
        terms = [(f * held[..., None]).transpose(1, 2) for f in factors(at)]
        total[chosen] = order.products(*terms) if len(terms) > 1 else order.terms(terms[0])
    return total


def _powers_of_two(most: int) -> list[int]:
    """From 1 to the first that is not below `most`."""
    return [1 << power for power in range((most - 1).bit_length() + 1)] if most else []


def _index_add(step: Step, order: Order) -> Tensor | None:
    before, dim, row, source = step.args
    if dim != 0 or before.any() or step.kwargs.get("alpha", 1) != 1:
        return None
    terms, known = source.reshape(len(row), -1), step.result.reshape(len(before), -1)
    return by_rows(row.long(), known, lambda at: (terms[at],), order).reshape(before.shape)


_SUMS: Mapping[str, Callable[[Step, Order], object]] = {
    "bmm": _batched,
    "cumsum": _cumsum,
    "dot": _product,
    "index_add": _index_add,
    "mean": _sum,
    "mm": _product,
    "mv": _product,
    "sum": _sum,
    "var_mean": _variance,
}


def _by_library(value: Tensor, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
    function = F.conv1d if value.dim() == 3 else F.conv2d
    return function(value, weight, None, stride)


def _unfolded(order: Order, value: Tensor, weight: Tensor, stride: tuple[int, ...]) -> Tensor:
    """A convolution as inner products of windows and weights."""
    extents = tuple(weight.shape[2:])
    windows = value
    for dim, (extent, step) in enumerate(zip(extents, stride, strict=True)):
        windows = windows.unfold(2 + dim, extent, step)
    rank = len(extents)
    places = windows.shape[2 : 2 + rank]
    moved = windows.movedim(1, 1 + rank)  # (batch, places, in, extents)
    rows = moved.reshape(value.shape[0] * math.prod(places), -1)
    known = _by_library(value, weight, stride).movedim(1, -1).reshape(len(rows), -1)
    found = inner_products(rows, weight.flatten(1), known, order)
    result: Tensor = found.reshape(value.shape[0], *places, -1).movedim(-1, 1)
    return result


def _plain(args: tuple[Any, ...]) -> bool:
    """Whether neither transposed, dilated nor in groups; `args` from the dilation on."""
    dilation, transposed, _, groups = args[:4]
    return not transposed and groups == 1 and all(each == 1 for each in dilation)


def _convolution(step: Step, convolve: Convolve) -> Tensor | None:
    value, weight, bias, stride, padding = step.args[:5]
    if not _plain(step.args[5:]):
        return None
    around = [size for size in reversed(padding) for _ in range(2)]
    found = convolve(F.pad(value, around), weight, tuple(stride))
    if found is None or bias is None:
        return found
    biases: Tensor = bias.reshape(-1, *(1 for _ in weight.shape[2:]))
    return found + biases


def _gradients(step: Step, convolve: Convolve) -> tuple[Tensor | None, ...] | None:
    """Of the input, the weights and the biases: two of them are convolutions as well."""
    grad, value, weight, _, stride, padding = step.args[:6]
    if not _plain(step.args[6:]) or any(s != 1 for s in stride) or any(padding):
        return None
    around = [size - 1 for size in reversed(weight.shape[2:]) for _ in range(2)]
    dims = tuple(range(2, weight.dim()))
    ones = (1,) * len(dims)
    of_value = convolve(F.pad(grad, around), weight.flip(dims).transpose(0, 1), ones)
    of_weight = convolve(value.transpose(0, 1), grad.transpose(0, 1), ones)
    old: tuple[Tensor | None, ...] = step.result
    return (
        old[0] if of_value is None else of_value,
        old[1] if of_weight is None else of_weight.transpose(0, 1),
        old[2],
    )

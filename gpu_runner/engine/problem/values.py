"""Families of values: change drawn inputs into large, shifted, structured, ... ones, by seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gpu_runner.data.task import Task, Values, Workload
from gpu_runner.engine.problem.problem import STORED, map_tensors
from gpu_runner.engine.problem.seeding import reseed

_SEED = 0xFA_711E5  # keeps this stream apart from make_inputs'
_SEED_MASK = 2**63 - 1  # torch takes seeds of 63 bits
_SCALE = 1000.0  # chosen, as the next: far from what tasks draw, and below float16's largest
_DEVIATIONS = 4.0  # chosen: all of one sign nearly, as `_shifted` says
_HEADROOM = 8.0  # root of the 64 that `integer_range` spares
_HEAVY_SHARE = 1 / 64  # chosen: rare, but in every row
_HEAVY = 100.0  # chosen: outweighs the rest of a row in its sum of squares
_ROWS = 4  # of every four rows one repeats its neighbour and one is zero
_LEAST_PATCHED = 8  # elements of which some may be replaced by others, an eighth at most
_ELSEWHERE = 0.75  # chosen: what a smaller tensor is multiplied by
_SEGMENT = 32  # elements that stand for a row where there is only one dimension


def varied(value: Any, task: Task, workload: Workload, seed: int) -> Any:
    """`value` with its floating tensors, also in tuples and lists, of the workload's family.

    To be called before tensors are rounded to the task's dtype; the same bits for the same seed.
    """
    family = workload.values
    if family in {Values.DRAWN, Values.HARD}:
        return value
    if family is Values.INTEGERS:
        dtype = task.real_dtype or "float32"
        largest = integer_range(dtype, task.reduction_length(workload))
        return _map(lambda tensor: integers(tensor, largest), value)
    reseed((seed ^ _SEED) & _SEED_MASK)
    if family is Values.NEAR:
        return _near(value)
    return _map(_FAMILIES[family], value, stored=family not in _OF_SCALES)


def _map(change: Callable[[Tensor], Tensor], value: object, *, stored: bool = True) -> object:
    """stored: whether floats of eight bits are changed, too."""

    def changed(tensor: Tensor) -> Tensor:
        if tensor.dtype in STORED:
            wide = tensor.detach().float()
            return _saturated(change(wide), tensor.dtype) if stored else tensor
        return change(tensor.detach()) if tensor.is_floating_point() else tensor

    return map_tensors(changed, value)


def _saturated(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """In a dtype of eight bits, as what is too large for it is stored."""
    largest = torch.finfo(dtype).max
    return tensor.clamp(-largest, largest).to(dtype)


def integer_range(dtype: str, length: float) -> int:
    """Largest integer R to draw, for sums of `length` products.

    Such sums are exact in `dtype`, with a factor of 64 to spare: then the usual bound on the error
    of a sum of products is below one half, and forgives nothing. At least 1: sums of more terms
    than the dtype's integers reach are exact with random signs.
    """
    exact = 2 / torch.finfo(getattr(torch, dtype)).eps  # all integers up to this are numbers of it
    return max(1, math.floor(math.sqrt(exact / max(length, 1.0)) / _HEADROOM))


def integers(tensor: Tensor, largest: int) -> Tensor:
    """Integers in [-largest, largest], of the tensor's signs and relative sizes."""
    size = tensor.double().square().mean().sqrt() if tensor.numel() else tensor.sum()
    unit = torch.where(size > 0, size, 1.0)
    whole = torch.round(tensor.double() / unit * (largest / 2)).clamp_(-largest, largest)
    return whole.to(tensor.dtype)


def _shifted(tensor: Tensor) -> Tensor:
    """Each row moved by four of its own standard deviations, so that no row drowns in another."""
    if tensor.dim() == 0:
        return tensor
    deviation = tensor.std(dim=-1, correction=0, keepdim=True)
    return tensor + _DEVIATIONS * torch.where(deviation > 0, deviation, tensor.abs())


def _heavy(tensor: Tensor) -> Tensor:
    if tensor.dim() == 0:
        return tensor
    return torch.where(torch.rand_like(tensor) < _HEAVY_SHARE, tensor * _HEAVY, tensor)


def _structured(tensor: Tensor) -> Tensor:
    """Every fourth row repeats the row before it, every fourth is zero; the others stay."""
    if tensor.dim() == 0:
        return tensor
    along = -2 if tensor.dim() > 1 else -1
    count = tensor.shape[along]
    index = torch.arange(count, device=tensor.device)
    step = 1 if tensor.dim() > 1 else _SEGMENT
    which = index // step % _ROWS
    changed = tensor.index_select(along, torch.where(which == 1, index - step, index))
    shape = (count, 1) if tensor.dim() > 1 else (count,)
    return changed.masked_fill((which == _ROWS - 1).view(shape), 0.0)


def _near(value: object) -> object:
    """Some tensors have other elements in one place, as many as a random power of two.

    They come from elsewhere in the tensor. So whoever looks at some elements alone, or at some
    tensors, misses what has changed. Tensors of one shape change together, and alike: one may be
    the other with noise, and elements of different places would make an outlier of each pair.
    """
    found: list[Tensor] = []

    def listed(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    _map(listed, value)
    shapes = list(dict.fromkeys(tensor.shape for tensor in found))
    chosen = (torch.rand(max(len(shapes), 1), device="cpu") < 1 / 2).tolist()
    chosen[int(torch.randint(len(chosen), (), device="cpu"))] = True
    pairs = zip(shapes, chosen, strict=False)
    patches = {shape: _patch(shape) for shape, wanted in pairs if wanted}
    return _map(lambda t: patches[t.shape](t) if t.shape in patches else t, value)


def _patch(shape: torch.Size) -> Callable[[Tensor], Tensor]:
    """What does that to each tensor of this shape.

    The elements come from the same row, as rows may be of different scales.
    """
    size = shape.numel()
    row = shape[-1] if shape and shape[-1] >= _LEAST_PATCHED else size
    if min(row, size) < _LEAST_PATCHED:
        return lambda tensor: tensor * _ELSEWHERE
    length = 1 << int(torch.randint((row // _LEAST_PATCHED).bit_length(), (), device="cpu"))
    places = row - length + 1
    begin = row * int(torch.randint(size // row, (), device="cpu"))
    at = int(torch.randint(places, (), device="cpu"))
    other = (at + int(torch.randint(1, places, (), device="cpu"))) % places
    to, of = begin + at, begin + other

    def patched(tensor: Tensor) -> Tensor:
        flat = tensor.reshape(-1).clone()
        flat[to : to + length] = tensor.reshape(-1)[of : of + length]
        return flat.view(tensor.shape)

    return patched


_FAMILIES: dict[Values, Callable[[Tensor], Tensor]] = {
    Values.SMALL: lambda tensor: tensor / _SCALE,
    Values.LARGE: lambda tensor: tensor * _SCALE,
    Values.SHIFTED: _shifted,
    Values.HEAVY: _heavy,
    Values.STRUCTURED: _structured,
}
_OF_SCALES = {Values.SMALL, Values.LARGE}
"""Families that floats of eight bits have no room for: their scales are changed instead."""

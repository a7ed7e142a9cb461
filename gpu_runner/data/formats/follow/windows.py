"""Convolutions, poolings and normalisations: what they need of a shape, and make of it."""

from __future__ import annotations

from typing import Any

from gpu_runner.data.formats.follow.given import Given, Rule
from gpu_runner.data.formats.follow.values import (
    Shape,
    Tensor,
    Unfollowed,
    same,
    whole,
    wholes,
)


def each(value: Any, rank: int) -> Shape:
    """A number for each dimension, be it given once or for each."""
    numbers = wholes(value) if isinstance(value, tuple | list) else (whole(value),) * rank
    if len(numbers) == 1:
        numbers *= rank
    same(rank, len(numbers))
    return numbers


def split_at(own: Tensor, rank: int, *, channels: bool = True) -> tuple[Shape, Shape]:
    """What comes before the last `rank` dimensions, channels and perhaps a batch, and these."""
    before, inner = own.shape[: len(own.shape) - rank], own.shape[len(own.shape) - rank :]
    if len(own.shape) < rank or len(before) not in ((1, 2) if channels else (0, 1, 2)):
        raise Unfollowed(f"{len(own.shape)} dimensions where {rank} and channels are needed")
    return before, inner


def _least(sizes: Shape, least: int = 1) -> Shape:
    if any(size < least for size in sizes):
        raise Unfollowed("a window that does not fit")
    return sizes


def _grouped(own: Tensor, channels: int, out: int, given: dict[str, Any]) -> tuple[Shape, Shape]:
    """The sizes before and in a window's dimensions, where channels fit the groups."""
    groups = whole(given.get("groups", 1))
    before, inner = split_at(own, given["rank"])
    same(channels, before[-1])
    if groups < 1 or channels % groups or out % groups:
        raise Unfollowed("groups that do not fit")
    return before, inner


def convolved(own: Tensor, channels: int, out: int, kernel: Any, given: dict[str, Any]) -> Tensor:
    """A convolution over as many dimensions as `given` says ("rank"), with its other settings."""
    rank = given["rank"]
    before, inner = _grouped(own, channels, out, given)
    kernel, stride = each(kernel, rank), each(given.get("stride", 1), rank)
    dilation, padding = each(given.get("dilation", 1), rank), given.get("padding", 0)
    if padding == "same":
        if set(stride) != {1}:
            raise Unfollowed("a padding that does not go with its stride")
        return own.shaped((*before[:-1], out, *inner))
    pads = each(0 if padding == "valid" else padding, rank)
    _wide_enough(inner, pads, str(given.get("padding_mode", "zeros")))
    sizes = zip(inner, kernel, _least(stride), pads, dilation, strict=True)
    found = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes)
    return Tensor((*before[:-1], out, *_least(found)))


def _wide_enough(inner: Shape, pads: Shape, mode: str) -> None:
    spare = {"reflect": 1, "circular": 0}.get(mode)
    if spare is not None and any(p > n - spare for p, n in zip(pads, inner, strict=True)):
        raise Unfollowed("a padding that is wider than the tensor")


def deconvolved(own: Tensor, channels: int, out: int, kernel: Any, given: dict[str, Any]) -> Tensor:
    """A transposed convolution; see `convolved`."""
    rank = given["rank"]
    before, inner = _grouped(own, channels, out, given)
    kernel, stride = each(kernel, rank), _least(each(given.get("stride", 1), rank))
    pads, more = each(given.get("padding", 0), rank), each(given.get("output_padding", 0), rank)
    dilation = each(given.get("dilation", 1), rank)
    sizes = zip(inner, kernel, stride, pads, more, dilation, strict=True)
    found = tuple((n - 1) * s - 2 * p + d * (k - 1) + m + 1 for n, k, s, p, m, d in sizes)
    return Tensor((*before[:-1], out, *_least(found)))


def pooled(own: Tensor, kernel: Any, given: dict[str, Any]) -> Any:
    """A pooling; with places beside it where `given` asks for them."""
    rank = given["rank"]
    before, inner = split_at(own, rank)
    kernel = each(kernel, rank)
    stride = given.get("stride")
    steps = kernel if stride is None or stride == () else each(stride, rank)
    pads, dilation = each(given.get("padding", 0), rank), each(given.get("dilation", 1), rank)
    if any(2 * p > k for p, k in zip(pads, kernel, strict=True)):
        raise Unfollowed("a padding of more than half the window")
    found = []
    for n, k, s, p, d in zip(inner, kernel, _least(steps), pads, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = room // s + 1
        if given.get("ceil_mode", False) and room >= 0 and room % s:
            count += 1
            count -= (count - 1) * s >= n + p  # the last window must begin inside
        found.append(count)
    result = own.shaped((*before, *_least(tuple(found))))
    return (result, Tensor(result.shape, "int")) if given.get("return_indices", False) else result


def adapted(own: Tensor, size: Any, rank: int) -> Tensor:
    """A pooling to this size, None being that of the tensor."""
    before, inner = split_at(own, rank)
    wanted = size if isinstance(size, tuple | list) else (size,) * rank
    same(rank, len(wanted))
    found = tuple(n if w is None else whole(w) for w, n in zip(wanted, inner, strict=True))
    _least(inner)
    return own.shaped((*before, *_least(found)))


def check_several(own: Tensor, rank_of_instances: int | None = None) -> None:
    """Raise `Unfollowed` where a normalisation in training would see one value."""
    values = own.count // max(1, own.shape[1] if len(own.shape) > 1 else 1)
    if rank_of_instances is not None:
        values = 1
        for size in own.shape[len(own.shape) - rank_of_instances :]:
            values *= size
    if values < 2:
        raise Unfollowed("one value to normalise")


def normalised_layers(own: Tensor, shape: Any) -> Tensor:
    """Layer normalisation over dimensions of this shape, the last ones."""
    wanted = (shape,) if isinstance(shape, int) else wholes(shape)
    if not wanted or own.shape[len(own.shape) - len(wanted) :] != wanted:
        raise Unfollowed("other dimensions than those to normalise")
    return Tensor(own.shape)


def normalised_groups(own: Tensor, groups: Any) -> Tensor:
    """Group normalisation, which needs more than one value a group."""
    if len(own.shape) < 2 or whole(groups) < 1 or own.shape[1] % groups:
        raise Unfollowed("groups that do not fit")
    if own.count // max(1, own.shape[0] * groups) < 2:
        raise Unfollowed("one value to normalise")
    return Tensor(own.shape)


def _settings(given: Given, names: str, start: int) -> dict[str, Any]:
    values = {name: given.get(i, name, None) for i, name in enumerate(names.split(), start)}
    return {name: value for name, value in values.items() if value is not None}


_MAX = "stride padding dilation ceil_mode return_indices"
_MEAN = "stride padding ceil_mode count_include_pad"


def _pool(rank: int, names: str) -> Rule:
    def pool(given: Given) -> Any:
        settings = _settings(given, names, 2) | {"rank": rank}
        return pooled(given.tensor(), given.get(1, "kernel_size"), settings)

    return pool


def _adaptive(rank: int) -> Rule:
    return lambda given: adapted(given.tensor(), given.get(1, "output_size"), rank)


def _layer_norm(given: Given) -> Tensor:
    return normalised_layers(given.tensor(), given.get(1, "normalized_shape"))


WINDOWS: dict[str, Rule] = {
    **{f"max_pool{rank}d": _pool(rank, _MAX) for rank in (1, 2, 3)},
    **{f"avg_pool{rank}d": _pool(rank, _MEAN) for rank in (1, 2, 3)},
    **{f"adaptive_avg_pool{rank}d": _adaptive(rank) for rank in (1, 2, 3)},
    **{f"adaptive_max_pool{rank}d": _adaptive(rank) for rank in (1, 2, 3)},
    "layer_norm": _layer_norm,
    "rms_norm": _layer_norm,
}
"""Rules by name, as `ARITHMETIC`."""

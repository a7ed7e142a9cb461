"""What gives a tensor's elements another shape or another place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpu_runner.data.formats.follow.arithmetic import check_places
from gpu_runner.data.formats.follow.given import Given, Rule
from gpu_runner.data.formats.follow.values import (
    Shape,
    Tensor,
    Unfollowed,
    axis,
    broadcast,
    few,
    same,
    tensor,
    whole,
    wholes,
)

_KEPT = (
    "alpha_dropout clone contiguous cpu cuda detach dropout dropout1d dropout2d dropout3d flip"
    " data requires_grad_ roll tril triu type_as pin_memory fliplr flipud expm1_ share_memory_"
)

_MOST_PARTS = 1024  # into which a tensor is cut


def _kept(given: Given) -> Tensor:
    return given.tensor()


def viewed(own: Tensor, sizes: Shape) -> Tensor:
    """The same elements in these sizes, of which one may be -1."""
    rest = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) > 1 or any(size < -1 for size in sizes):
        raise Unfollowed("a view of more than one open size")
    if -1 in sizes:
        if not rest or own.count % rest:
            raise Unfollowed(f"{own.count} elements in rows of {rest}")
        sizes = tuple(own.count // rest if size == -1 else size for size in sizes)
    same(math.prod(sizes), own.count)
    return own.shaped(sizes)


def _view(given: Given) -> Tensor:
    return viewed(given.tensor(), given.sizes(1, "shape", "size"))


def flattened(own: Tensor, start: Any, end: Any) -> Tensor:
    """The dimensions from `start` to `end` as one."""
    first, last = axis(start, len(own.shape)), axis(end, len(own.shape))
    if first > last:
        raise Unfollowed("a range of dimensions that ends before it begins")
    joined = math.prod(own.shape[first : last + 1])
    return own.shaped((*own.shape[:first], joined, *own.shape[last + 1 :]))


def _flatten(given: Given) -> Tensor:
    return flattened(given.tensor(), given.get(1, "start_dim", 0), given.get(2, "end_dim", -1))


def _squeeze(given: Given) -> Tensor:
    own = given.tensor()
    dims = given.get(1, "dim", None)
    if dims is None:
        return own.shaped([size for size in own.shape if size != 1])
    numbers = [dims] if isinstance(dims, int) else wholes(dims)
    gone = {at for at in (axis(d, len(own.shape)) for d in numbers) if own.shape[at] == 1}
    return own.shaped([size for at, size in enumerate(own.shape) if at not in gone])


def _unsqueeze(given: Given) -> Tensor:
    own = given.tensor()
    at = given.axis(1, "dim", len(own.shape) + 1)
    return own.shaped((*own.shape[:at], 1, *own.shape[at:]))


def permuted(own: Tensor, order: Sequence[int]) -> Tensor:
    """The dimensions in another order."""
    chosen = [axis(d, len(own.shape)) for d in order]
    if sorted(chosen) != list(range(len(own.shape))):
        raise Unfollowed("an order that leaves dimensions out")
    return own.shaped([own.shape[at] for at in chosen])


def _permute(given: Given) -> Tensor:
    return permuted(given.tensor(), given.sizes(1, "dims"))


def _transpose(given: Given) -> Tensor:
    own = given.tensor()
    rank = len(own.shape)
    a, b = given.axis(1, "dim0", rank), given.axis(2, "dim1", rank)
    order = list(range(rank))
    order[a], order[b] = order[b], order[a]
    return permuted(own, order)


def _turned(given: Given) -> Tensor:
    """`.t()`, `.T` and `.mT`: the last two dimensions change places."""
    own = given.tensor()
    if len(own.shape) < 2:
        return own
    return own.shaped((*own.shape[:-2], own.shape[-1], own.shape[-2]))


def _expand(given: Given) -> Tensor:
    own, sizes = given.tensor(), given.sizes(1, "size")
    return _expanded(own, sizes)


def _expanded(own: Tensor, sizes: Shape) -> Tensor:
    if len(sizes) < len(own.shape):
        raise Unfollowed("an expansion to fewer dimensions")
    old = (1,) * (len(sizes) - len(own.shape)) + own.shape
    wanted = tuple(o if size == -1 else size for size, o in zip(sizes, old, strict=True))
    same(math.prod(wanted), math.prod(broadcast(old, wanted)))
    return own.shaped(wanted)


def _repeat(given: Given) -> Tensor:
    own, times = given.tensor(), given.sizes(1, "repeats", "dims")
    if len(times) < len(own.shape):
        raise Unfollowed("a repetition of fewer dimensions")
    old = (1,) * (len(times) - len(own.shape)) + own.shape
    return own.shaped([size * count for size, count in zip(old, times, strict=True)])


def _tensors(given: Given) -> list[Tensor]:
    parts = given.get(0, "tensors")
    if not isinstance(parts, tuple | list) or not parts:
        raise Unfollowed("tensors that are not known")
    return [tensor(part) for part in few(parts)]


def _cat(given: Given) -> Tensor:
    parts = _tensors(given)
    rank = len(parts[0].shape)
    at = given.axis(1, "dim", rank, given.kwargs.get("axis", 0))
    around = {(len(p.shape), p.shape[:at], p.shape[at + 1 :]) for p in parts}
    if len(around) > 1 or rank == 0:
        raise Unfollowed("tensors that do not fit beside each other")
    joined = sum(part.shape[at] for part in parts)
    return parts[0].shaped((*parts[0].shape[:at], joined, *parts[0].shape[at + 1 :]))


def _stack(given: Given) -> Tensor:
    parts = _tensors(given)
    if len({part.shape for part in parts}) > 1:
        raise Unfollowed("tensors that do not fit upon each other")
    at = given.axis(1, "dim", len(parts[0].shape) + 1, 0)
    return parts[0].shaped((*parts[0].shape[:at], len(parts), *parts[0].shape[at:]))


def _cut(own: Tensor, at: int, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    few(tuple(sizes))
    return tuple(own.shaped((*own.shape[:at], size, *own.shape[at + 1 :])) for size in sizes)


def _split(given: Given) -> tuple[Tensor, ...]:
    own, size = (
        given.tensor(),
        given.get(1, "split_size_or_sections", given.kwargs.get("split_size")),
    )
    at = given.axis(2, "dim", len(own.shape), 0)
    if isinstance(size, tuple | list):
        same(own.shape[at], sum(wholes(size)))
        return _cut(own, at, wholes(size))
    if whole(size) < 1 or own.shape[at] // whole(size) > _MOST_PARTS:
        raise Unfollowed("parts without a size")
    full, rest = divmod(own.shape[at], size)
    return _cut(own, at, [size] * full + [rest] * bool(rest))


def _chunk(given: Given) -> tuple[Tensor, ...]:
    own, count = given.tensor(), given.whole(1, "chunks")
    at = given.axis(2, "dim", len(own.shape), 0)
    if count < 1:
        raise Unfollowed("no chunks")
    size = -(-own.shape[at] // count)
    return _split(Given((own, max(size, 1), at)))


def _narrow(given: Given) -> Tensor:
    own = given.tensor()
    at = given.axis(1, "dim", len(own.shape))
    start, length = given.whole(2, "start"), given.whole(3, "length")
    if not 0 <= start <= start + length <= own.shape[at]:
        raise Unfollowed("a part that lies outside")
    return own.shaped((*own.shape[:at], length, *own.shape[at + 1 :]))


def _select(given: Given) -> Tensor:
    own = given.tensor()
    at = given.axis(1, "dim", len(own.shape))
    given.axis(2, "index", own.shape[at])
    return own.shaped((*own.shape[:at], *own.shape[at + 1 :]))


def looked_up(places: Tensor, table: Shape) -> Tensor:
    """Rows of a table of (rows, columns)."""
    check_places(places, table[0])
    return Tensor((*places.shape, *table[1:]))


def padded(own: Tensor, pad: Any, mode: str = "constant") -> Tensor:
    """With so many elements more at the ends of the last dimensions, the last one first."""
    pairs = wholes(pad)
    shape = list(own.shape)
    if len(pairs) % 2 or len(pairs) > 2 * len(shape):
        raise Unfollowed("a padding of other dimensions")
    for at, (low, high) in enumerate(zip(pairs[::2], pairs[1::2], strict=True), 1):
        most = {"reflect": shape[-at] - 1, "circular": shape[-at]}.get(mode)
        if most is not None and max(low, high) > most:
            raise Unfollowed("a padding that is wider than the tensor")
        shape[-at] += low + high
    return own.shaped(shape)


def _pad(given: Given) -> Tensor:
    return padded(given.tensor(), given.get(1, "pad"), str(given.get(2, "mode", "constant")))


def _unfold(given: Given) -> Tensor:
    """A tensor's own method: windows along a dimension."""
    own = given.tensor()
    at = given.axis(1, "dimension", len(own.shape))
    size, step = given.whole(2, "size"), given.whole(3, "step")
    if not 0 < size <= own.shape[at] or step < 1:
        raise Unfollowed("windows that do not fit")
    count = (own.shape[at] - size) // step + 1
    return own.shaped((*own.shape[:at], count, *own.shape[at + 1 :], size))


MOVES: dict[str, Rule] = {
    **dict.fromkeys(_KEPT.split(), _kept),
    **dict.fromkeys(("view", "reshape"), _view),
    **dict.fromkeys(("t", "T", "mT", "adjoint"), _turned),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    **dict.fromkeys(("repeat", "tile"), _repeat),
    **dict.fromkeys(("expand", "broadcast_to"), _expand),
    "flatten": _flatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "permute": _permute,
    "stack": _stack,
    "split": _split,
    "chunk": _chunk,
    "narrow": _narrow,
    "select": _select,
    "pad": _pad,
    "unfold": _unfold,
}
"""Rules by name, as `ARITHMETIC`."""


def indexed(own: Tensor, places: Any) -> Tensor:
    """`own[places]`; of tensors as places, one of whole numbers alone is followed."""
    keys = list(places) if isinstance(places, tuple) else [places]
    named = sum(key is not None and key is not Ellipsis for key in keys)
    tensors = sum(isinstance(key, Tensor | list) for key in keys)
    if keys.count(Ellipsis) > 1 or named > len(own.shape) or tensors > 1:
        raise Unfollowed("more places than dimensions")
    if Ellipsis not in keys:
        keys.append(Ellipsis)
    left = list(own.shape)
    shape: list[int] = []
    for number, key in enumerate(keys):
        if key is None:
            shape.append(1)
        elif key is Ellipsis:
            behind = sum(k is not None for k in keys[number + 1 :])
            shape += left[: len(left) - behind]
            left = left[len(left) - behind :]
        else:
            shape += _taken(left.pop(0), key)
    return own.shaped(shape)


def _taken(size: int, key: Any) -> Sequence[int]:
    """What one place makes of a dimension."""
    if isinstance(key, slice):
        bounds = [whole(n) if n is not None else None for n in (key.start, key.stop, key.step)]
        if bounds[2] is not None and bounds[2] < 1:
            raise Unfollowed("a step that is none")
        return [len(range(*slice(*bounds).indices(size)))]
    if isinstance(key, Tensor):
        check_places(key, size)
        return key.shape
    if isinstance(key, list):
        for place in wholes(key):
            axis(place, size)
        return [len(key)]
    if isinstance(key, bool):
        raise Unfollowed("a truth as a place")
    if not size:
        raise Unfollowed("a place in nothing")
    axis(key, size)
    return []

"""Where in an output a mask holds, in words, if that is somewhere regular."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.engine.diagnosis.case import chunks, positions

_FIRST = 1 << 12  # places that are looked at for equal distances
_LARGE = 1 << 22  # elements
_FEWEST = 3  # that make a pattern


@dataclass(frozen=True)
class Place:
    """Words such as "the last 3 rows".

    is_end: as a loop that stops early leaves it; is_regular: more than some rows of many.
    """

    words: str
    is_end: bool = False
    is_regular: bool = True


def place_of(mask: Tensor) -> Place | None:
    """Where a mask holds; None where it does everywhere, nowhere or at no regular place."""
    total = int(mask.count_nonzero().item())
    if total in (0, mask.numel()):
        return None
    axes = [axis for axis, size in enumerate(mask.shape) if size > 1]
    compact = mask.reshape([mask.shape[axis] for axis in axes])
    if mask.numel() > _LARGE and not _may_be_regular(compact):
        return None
    counts = [_counts(compact, axis) for axis in range(compact.dim())]
    names = _names(axes)
    return (
        _along_an_axis(counts, total, names)
        or _flat_end(compact.reshape(-1), total)
        or _border(counts, compact.shape, total, names)
        or _block(counts, total)
        or _every_nth(compact.reshape(-1), total)
    )


def _may_be_regular(mask: Tensor) -> bool:
    """Whether samples leave a regular place possible: much less work than to look at all."""
    generator = torch.Generator().manual_seed(2)
    there, elsewhere = (positions(flat.reshape(-1), generator) for flat in (mask, ~mask))
    if math.gcd(*there.diff().tolist()) > 1:
        return True
    at, others = (torch.unravel_index(flat, mask.shape) for flat in (there, elsewhere))
    apart = (not torch.isin(one, other).any() for one, other in zip(at, others, strict=True))
    boxes = ((at, others), ((there,), (elsewhere,)))  # of indices, and of places in memory
    return any(apart) or not all(
        _any_inside(one, other) and _any_inside(other, one) for one, other in boxes
    )


def _any_inside(points: tuple[Tensor, ...], of: tuple[Tensor, ...]) -> bool:
    """Whether any of the points is in the smallest box around the others."""
    inside = torch.ones_like(points[0], dtype=torch.bool)
    for point, other in zip(points, of, strict=True):
        inside &= (point >= other.min()) & (point <= other.max())
    return bool(inside.any())


def _counts(mask: Tensor, axis: int) -> Tensor:
    """How often the mask holds for each index of an axis."""
    others = [other for other in range(mask.dim()) if other != axis]
    return (mask.sum(dim=others) if others else mask.long()).cpu()


def _names(axes: list[int]) -> list[str]:
    if len(axes) == 1:
        return ["elements"]
    if len(axes) == 2:
        return ["rows", "columns"]
    return [f"indices of dimension {axis}" for axis in axes]


def _along_an_axis(counts: list[Tensor], total: int, names: list[str]) -> Place | None:
    """Whole rows, whole columns and so on."""
    for count, name in zip(counts, names, strict=True):
        hit = count.nonzero().reshape(-1)
        each = total // hit.numel()
        whole = int(count.sum().item()) == total and bool((count[hit] == each).all())
        complete = whole and hit.numel() < count.numel() and _is_full(counts, count, each)
        if complete and (place := _indices(hit.tolist(), count.numel(), name)):
            return place
    return None


def _is_full(counts: list[Tensor], count: Tensor, each: int) -> bool:
    """Whether `each` is all that there is at an index of this axis."""
    others = 1
    for other in counts:
        if other is not count:
            others *= other.numel()
    return each == others


def _indices(hit: list[int], size: int, name: str) -> Place | None:
    if hit[-1] == size - 1 and hit[0] == size - len(hit):
        return Place(_some("last", len(hit), name), is_end=True)
    if hit[0] == 0 and hit[-1] == len(hit) - 1:
        return Place(_some("first", len(hit), name))
    step = hit[1] - hit[0] if len(hit) >= _FEWEST else 1
    if step > 1 and hit == list(range(hit[0], size, step)):
        return Place(f"every {_ordinal(step)} of the {name}")
    if len(hit) >= _FEWEST and hit[-1] - hit[0] == len(hit) - 1:
        return Place(f"the {name} {hit[0]} to {hit[-1]}")
    return Place(f"{len(hit)} whole {name}", is_regular=False) if name != "elements" else None


def _some(which: str, count: int, name: str) -> str:
    if count > 1:
        return f"the {which} {count} {name}"
    return f"the {which} {name.replace('indices', 'index', 1).removesuffix('s')}"


def _flat_end(flat: Tensor, total: int) -> Place | None:
    first = int(flat.to(torch.uint8).argmax().item())
    if first == flat.numel() - total:
        return Place(f"the elements from {first} on", is_end=True)
    if first == 0 and not flat[total:].any().item():
        return Place(f"the first {total} elements")
    return None


def _border(
    counts: list[Tensor], shape: tuple[int, ...], total: int, names: list[str]
) -> Place | None:
    """All but a block that begins at the first element, as partial tiles at the ends leave it."""
    elements, ends = 1, []
    for count, size in zip(counts, shape, strict=True):
        others = int(torch.tensor(shape).prod().item()) // size
        rest = (count < others).nonzero().reshape(-1)
        if rest.numel() == 0 or int(rest[0]) != 0 or int(rest[-1]) != rest.numel() - 1:
            return None
        ends.append(rest.numel())
        elements *= rest.numel()
    if elements != int(torch.tensor(shape).prod().item()) - total:
        return None
    parts = [
        f"{name} from {end} on"
        for name, end, size in zip(names, ends, shape, strict=True)
        if end < size
    ]
    return Place(" and ".join(parts), is_end=True)


def _block(counts: list[Tensor], total: int) -> Place | None:
    volume, ranges, is_end = 1, [], True
    for count in counts:
        hit = count.nonzero().reshape(-1)
        low, high = int(hit[0]), int(hit[-1]) + 1
        volume *= high - low
        ranges.append(f"{low}:{high}")
        is_end = is_end and high == count.numel()
    if volume != total or len(counts) < 2 or total < _FEWEST:
        return None
    return Place(f"the block [{', '.join(ranges)}]", is_end)


def _every_nth(flat: Tensor, total: int) -> Place | None:
    """Equal distances all over the output."""
    if total < _FEWEST:
        return None
    first = _first_positions(flat)
    step = int(first[1] - first[0])
    if step < 2 or not bool((first.diff() == step).all()):
        return None
    expected = len(range(int(first[0]), flat.numel(), step))
    regular = total == expected and bool(flat[int(first[0]) :: step].all().item())
    return Place(f"every {_ordinal(step)} element") if regular else None


def _first_positions(flat: Tensor) -> Tensor:
    found: list[Tensor] = []
    for low, high in chunks(flat.numel()):
        found.append(flat[low:high].nonzero().reshape(-1)[:_FIRST].cpu() + low)
        if sum(part.numel() for part in found) >= _FEWEST:
            break
    return torch.cat(found)


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"

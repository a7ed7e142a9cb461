"""Further workloads for a task that has one shape, from the sizes that it may be given."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from gpu_runner.data.formats.sizes import Shape, Size, Sizes
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Direction

DEFAULT = "default"
CPU_LIMIT = 2**18
"""Elements that the inputs of a CPU's workload have together, where its sizes allow so few."""
_LEAST = 8  # an inner size below it is rather a number of channels, which Model expects
_FLOOR = 16  # of inner sizes: windows must still fit in
_LEADING_FLOOR = 2  # a normalisation over a batch of one is none
_MOST_SIZES = 64
_LARGEST = 2**31  # of a size; what is beyond is a mistake, and its primes take long to find


def propose(sizes: Sizes, *, rigid: bool) -> tuple[Workload, ...]:
    """The file's own workload, `default`, and those that are proposed beside it, if any.

    `half` halves every size that may change, `odd` takes smaller primes. Where the file's
    own inputs have more than `CPU_LIMIT` elements, these three are for CUDA devices, and CPUs get
    `small`, the largest size halved until they have fewer, and its `small_odd`. Odd ones are
    hidden. With `rigid`, leading dimensions alone change. The same file gives the same workloads.
    Nothing is proposed for sizes beyond `_LARGEST`, or for more than `_MOST_SIZES` of them.
    """
    items = [item for size in sizes.values.values() for item in _items(size)]
    if len(items) > _MOST_SIZES or max(items, default=0) > _LARGEST:
        return (Workload(name=DEFAULT, parameters={}, directions=(Direction.FORWARD,)),)
    sweep = _Sweep.read(sizes, rigid=rigid)
    own = {name: sizes.values[name] for name in sweep.floors}
    if not own:
        return (sweep.workload(DEFAULT, own),)
    small = sweep.shrunk(own)
    if small == own:
        found = [(DEFAULT, own), ("half", sweep.halved(own)), ("odd", sweep.odd(own))]
        return tuple(_distinct([sweep.workload(name, of) for name, of in found]))
    cuda, cpu = (DeviceKind.CUDA,), (DeviceKind.CPU,)
    workloads = [
        sweep.workload(DEFAULT, own, cuda),
        sweep.workload("half", sweep.halved(own), cuda),
        sweep.workload("small", small, cpu),
        sweep.workload("odd", sweep.odd(own), cuda),
        sweep.workload("small_odd", sweep.odd(small), cpu),
    ]
    return tuple(_distinct(workloads))


@dataclass(frozen=True)
class _Sweep:
    """The sizes that change, with the least value of each.

    tied: whether sizes that are alike stay alike: tensors of different ranks, as of predictions
    and labels, may need that to be combined.
    """

    sizes: Sizes
    floors: dict[str, int]
    tied: bool

    @classmethod
    def read(cls, sizes: Sizes, *, rigid: bool) -> _Sweep:
        shapes = sizes.shapes({})
        if shapes is None:
            return cls(sizes, {}, tied=False)
        leading = {name for name in sizes.free if _leads(sizes, name, shapes)}
        inner = {n for n in sizes.free if not rigid and min(_items(sizes.values[n])) >= _LEAST}
        chosen = [name for name in sizes.free if name in leading | inner]
        floors = {name: _LEADING_FLOOR if name in leading else _FLOOR for name in chosen}
        return cls(sizes, floors, tied=len({len(shape) for shape in shapes}) > 1)

    def workload(
        self,
        name: str,
        of: dict[str, Size],
        devices: tuple[DeviceKind, ...] = (DeviceKind.CUDA, DeviceKind.CPU),
    ) -> Workload:
        changed = self.sizes.changed(of)
        return Workload(
            name=name,
            parameters={n: s if isinstance(s, int) else list(s) for n, s in changed.items()},
            hidden=name.endswith("odd"),
            devices=devices,
            directions=(Direction.FORWARD,),
        )

    def halved(self, of: dict[str, Size]) -> dict[str, Size]:
        return {name: self._half(name, size) for name, size in of.items()}

    def odd(self, of: dict[str, Size]) -> dict[str, Size]:
        """Primes, no two alike if possible, so that swapped dimensions show."""
        primes: dict[int, int] = {}
        taken: set[int] = set()

        def change(item: int) -> int:
            prime = primes.get(item) if self.tied else None
            if prime is None:
                prime = primes[item] = prime_below(item, taken)
            taken.add(prime)
            return prime

        return {name: _each(size, change) for name, size in of.items()}

    def shrunk(self, of: dict[str, Size]) -> dict[str, Size]:
        """The largest size halved until there are few elements, or no size can shrink."""
        while self._elements(of) > CPU_LIMIT:
            shrinking = [name for name, size in of.items() if self._half(name, size) != size]
            if not shrinking:
                break
            largest = max(shrinking, key=lambda name: (max(_items(of[name])), name))
            alike = max(_items(of[largest]))
            chosen = [n for n in of if n == largest or (self.tied and alike in _items(of[n]))]
            of = of | self.halved({name: of[name] for name in chosen})
        return of

    def _half(self, name: str, size: Size) -> Size:
        floor = self.floors[name]
        return _each(size, lambda item: max(item // 2, min(item, floor)))

    def _elements(self, of: dict[str, Size]) -> int:
        shapes = self.sizes.shapes(self.sizes.changed(of)) or []
        return sum(math.prod(shape) for shape in shapes)


def prime_below(size: int, taken: Collection[int] = ()) -> int:
    """The largest prime below `size`; 3 for 2, and 1 for 1.

    Of those above half of `size`, one that is not taken is preferred.
    """
    if size <= 2:
        return {2: 3}.get(size, size)
    below = (number for number in range(size - 1, 1, -1) if _is_prime(number))
    largest = next(below)
    if largest not in taken:
        return largest
    near = itertools.takewhile(lambda number: number > size // 2, below)
    return next((number for number in near if number not in taken), largest)


@functools.lru_cache(maxsize=1 << 16)
def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def _leads(sizes: Sizes, name: str, shapes: list[Shape]) -> bool:
    """Whether the size is the first dimension of a tensor."""
    value = sizes.values[name]
    other = sizes.shapes(sizes.changed({name: _each(value, lambda item: item + 1)}))
    pairs = zip(shapes, other or [], strict=False)
    return any(a[:1] != b[:1] for a, b in pairs)


def _items(size: Size) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else size


def _each(size: Size, change: Callable[[int], int]) -> Size:
    return change(size) if isinstance(size, int) else tuple(change(item) for item in size)


def _distinct(workloads: list[Workload]) -> Iterator[Workload]:
    """Those that are no repetition of an earlier one on the same devices."""
    seen: list[tuple[object, object]] = []
    for workload in workloads:
        key = (workload.parameters, workload.devices)
        if key not in seen:
            seen.append(key)
            yield workload

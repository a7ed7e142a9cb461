"""Further workloads for a task that has one shape, from the sizes that it may be given."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from gpu_runner.data.formats.sizes import Shape, Size, Sizes
from gpu_runner.data.formats.source import needs_cuda
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Direction

DEFAULT = "default"
CPU_LIMIT = 2**18
"""Elements that the inputs of a CPU's workload have together, where its sizes allow so few."""
_LEAST = 8  # an inner size below it is rather a number of channels or of heads
_FLOOR = 16  # of inner sizes: little is to be computed below
_LEADING_FLOOR = 2  # a normalisation over a batch of one is none
_MOST_SIZES, _MOST_TRIED = 64, 8
_LARGEST = 2**31  # of a size; what is beyond is a mistake, and its primes take long to find

_CUDA, _CPU = (DeviceKind.CUDA,), (DeviceKind.CPU,)
_BOTH = (*_CUDA, *_CPU)

_Values = dict[str, Size]


def own_workload(sizes: Sizes) -> Workload:
    """The file's own workload, `default`.

    It is for CUDA devices alone where the inputs have more than `CPU_LIMIT` elements, nobody can
    tell how many, or the file asks for CUDA by name.
    """
    sweep = _Sweep(sizes, {})
    is_for_both = sweep.is_small({}) and not needs_cuda(sizes.tree)
    return sweep.workload(DEFAULT, {}, _BOTH if is_for_both else _CUDA)


def further_workloads(sizes: Sizes) -> tuple[Workload, ...]:
    """The file's own workload, and those that are added beside it, if any.

    `half` halves every size that may change, `odd` takes smaller primes. Where `default` is for
    CUDA devices alone, so are these, and CPUs get `small`, the largest size halved until the inputs
    have few enough elements, and its `small_odd`. Odd ones are hidden. A workload is added if
    `Model` surely takes it; where it does not with all sizes changed, fewer are. The same file
    gives the same workloads. Nothing is added for sizes beyond `_LARGEST`, or for more than
    `_MOST_SIZES` of them.
    """
    default = own_workload(sizes)
    items = [item for size in sizes.values.values() for item in _items(size)]
    if len(items) > _MOST_SIZES or max(items, default=0) > _LARGEST or sizes.unfit({}):
        return (default,)
    sweep = _Sweep.read(sizes)
    found = [default, *sweep.first("half", default.devices, lambda s: s.halved(s.own))]
    lacks_cpu = default.devices == _CUDA and not needs_cuda(sizes.tree)
    if lacks_cpu:
        found += sweep.first("small", _CPU, _Sweep.shrunk)
    found += sweep.first("odd", default.devices, lambda s: s.odd(s.own))
    if lacks_cpu:
        found += sweep.first("small_odd", _CPU, lambda s: s.odd(s.shrunk()))
    return tuple(_distinct(found))


@dataclass(frozen=True)
class _Sweep:
    """The sizes that may change, with the least value of each.

    apart: whether sizes that are alike may become different.
    """

    sizes: Sizes
    floors: dict[str, int]
    apart: bool = True

    @classmethod
    def read(cls, sizes: Sizes) -> _Sweep:
        shapes = sizes.shapes({})
        if shapes is None:
            return cls(sizes, {})
        moved = {name: _moved(sizes, name, shapes) for name in sizes.free}
        leading = {name for name, ranks in moved.items() if 0 in ranks}
        inner = {n for n, m in moved.items() if m and min(_items(sizes.values[n])) >= _LEAST}
        chosen = [name for name in sizes.free if name in leading | inner]
        return cls(sizes, {n: _LEADING_FLOOR if n in leading else _FLOOR for n in chosen})

    def narrower(self) -> Iterator[_Sweep]:
        """Itself, then with fewer sizes, or such as stay alike where they are alike."""
        yield self
        yield replace(self, apart=False)
        leading = {name: floor for name, floor in self.floors.items() if floor == _LEADING_FLOOR}
        for floors in (self._movable, leading):
            yield replace(self, floors=floors)
            yield replace(self, floors=floors, apart=False)

    @functools.cached_property
    def _movable(self) -> dict[str, int]:
        """The sizes that may change without any other; they are looked for among few."""
        found = {}
        for name in list(self.floors)[:_MOST_TRIED]:
            own = {name: self.sizes.values[name]}
            if self._fits(self.halved(own)) and self._fits(self.odd(own)):
                found[name] = self.floors[name]
        return found

    @property
    def own(self) -> _Values:
        """The file's own values of the sizes."""
        return {name: self.sizes.values[name] for name in self.floors}

    def _fits(self, of: _Values) -> bool:
        """Whether `Model` surely takes inputs of these sizes."""
        return not self.sizes.unfit(self.sizes.changed(of))

    def workload(self, name: str, of: _Values, devices: tuple[DeviceKind, ...]) -> Workload:
        changed = self.sizes.changed(of)
        return Workload(
            name=name,
            parameters={n: s if isinstance(s, int) else list(s) for n, s in changed.items()},
            hidden=name.endswith("odd"),
            devices=devices,
            directions=(Direction.FORWARD,),
        )

    def first(
        self, name: str, devices: tuple[DeviceKind, ...], change: Callable[[_Sweep], _Values]
    ) -> Iterator[Workload]:
        """The workload of the widest sweep that `Model` takes, if it takes one."""
        for sweep in self.narrower():
            of = change(sweep)
            is_allowed = devices == _CUDA or sweep.is_small(of)
            if of != sweep.own and is_allowed and sweep._fits(of):
                yield self.workload(name, of, devices)
                return

    def halved(self, of: dict[str, Size]) -> dict[str, Size]:
        return {name: self._half(name, size) for name, size in of.items()}

    def odd(self, of: dict[str, Size]) -> dict[str, Size]:
        """Primes, no two alike if possible, so that swapped dimensions show."""
        primes: dict[int, int] = {}
        taken: set[int] = set()

        def change(item: int) -> int:
            prime = None if self.apart else primes.get(item)
            if prime is None:
                prime = primes[item] = prime_below(item, taken)
            taken.add(prime)
            return prime

        return {name: _each(size, change) for name, size in of.items()}

    def shrunk(self) -> _Values:
        """The largest size halved until there are few elements, or no size can shrink.

        Then leading sizes are 1.
        """
        of = self.own
        while not self.is_small(of):
            shrinking = [name for name, size in of.items() if self._half(name, size) != size]
            if not shrinking:
                leading = [n for n in of if self.floors[n] == _LEADING_FLOOR]
                return of | {name: _each(of[name], lambda item: 1) for name in leading}
            largest = max(shrinking, key=lambda name: (max(_items(of[name])), name))
            alike = max(_items(of[largest]))
            chosen = [n for n in of if n == largest or (not self.apart and alike in _items(of[n]))]
            of = of | self.halved({name: of[name] for name in chosen})
        return of

    def is_small(self, of: _Values) -> bool:
        """Whether inputs of these sizes have few elements, as far as that can be told."""
        shapes = self.sizes.shapes(self.sizes.changed(of))
        return shapes is not None and sum(math.prod(shape) for shape in shapes) <= CPU_LIMIT

    def _half(self, name: str, size: Size) -> Size:
        floor = self.floors[name]
        return _each(size, lambda item: max(item // 2, min(item, floor)))


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


def _moved(sizes: Sizes, name: str, shapes: list[Shape]) -> set[int]:
    """Which dimensions of tensors a size gives, counted from the front."""
    value = sizes.values[name]
    other = sizes.shapes(sizes.changed({name: _each(value, lambda item: item + 1)}))
    pairs = zip(shapes, other or [], strict=False)
    return {at for a, b in pairs for at, (m, n) in enumerate(zip(a, b, strict=False)) if m != n}


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

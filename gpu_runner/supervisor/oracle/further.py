"""Further workloads for a task that has one shape, from the sizes that it may be given."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from gpu_runner.data.formats.kernelbench import UNLISTED
from gpu_runner.data.formats.sizes import Size
from gpu_runner.data.formats.source import needs_cuda
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.oracle.sizes import Shape, Sizes

CPU_LIMIT = 2**18
"""How many elements a CPU workload's inputs may have in total, if its sizes allow so few."""
_LEAST = 8  # an inner size below it is rather a number of channels or of heads
_FLOOR = 16  # of inner sizes: little is to be computed below
_LEADING_FLOOR = 2  # a normalisation over a batch of one is none
_MOST_SIZES, _MOST_TRIED = 64, 8
_LARGEST = 2**31  # of a size; what is beyond is a mistake, and its primes take long to find
_LESS, _LESS_ODD, _MORE, _MORE_ODD = 3 / 4, 9 / 10, 5 / 4, 6 / 5  # chosen: as much in all as theirs
_UNLISTED_LIMIT = 2 * CPU_LIMIT  # what is more than a workload of the largest size may be
_ALIGNED, _LEAST_ALIGNED = 8, 32

_CUDA, _CPU = (DeviceKind.CUDA,), (DeviceKind.CPU,)

_Values = dict[str, Size]


def further_workloads(own: Workload, sizes: Sizes) -> tuple[Workload, ...]:
    """The file's own workload, and those that are added beside it, if any.

    It is for CUDA devices alone where its inputs have more than `CPU_LIMIT` elements. `half` halves
    every size that may change. Where `own` is for CUDA devices alone, so is this, and CPUs get
    `small`, the largest size halved until the inputs have few enough elements. Either gets up to
    four unlisted ones, see `_unlisted`. A workload is added if `Model` took it; where it does not
    with all sizes changed, fewer are. The same file gives the same workloads.
    Nothing is added for sizes beyond `_LARGEST`, or for more than `_MOST_SIZES` of them. Raises
    `OracleError` as `Sizes.run` does.
    """
    if sizes.own.shapes is not None and sizes.own.elements > CPU_LIMIT:
        own = replace(own, devices=_CUDA)
    items = [item for size in sizes.values.values() for item in _items(size)]
    if len(items) > _MOST_SIZES or max(items, default=0) > _LARGEST or sizes.own.fault:
        return (own,)
    sweep = _Sweep.read(own, sizes)
    found = [own, *sweep.first("half", own.devices, lambda s: s.halved(s.own))]
    smaller = (lambda s: s.halved(s.own)) if len(found) > 1 else (lambda s: s.own)
    small: list[Workload] = []
    if own.devices == _CUDA and not needs_cuda(sizes.tree):
        small = list(sweep.first("small", _CPU, _Sweep.shrunk))
    found += [*small, *_unlisted(sweep, "", own.devices, (lambda s: s.own, smaller))]
    if small:
        found += _unlisted(sweep, "small_", _CPU, (_Sweep.shrunk, _Sweep.shrunk))
    return tuple(_distinct(found))


def _unlisted(
    sweep: _Sweep, prefix: str, devices: tuple[DeviceKind, ...], listed: tuple[_Change, _Change]
) -> Iterator[Workload]:
    """`less` and `odd` are smaller than the first of two listed workloads, the others larger than
    the second.

    A kernel's mean speedup on them is compared with that on the listed ones.
    """
    first, second = listed
    yield from sweep.first(f"{prefix}less", devices, lambda s: s.even(first(s), _LESS))
    yield from sweep.first(f"{prefix}odd", devices, lambda s: s.odd(first(s), _LESS_ODD))
    yield from sweep.first(f"{prefix}more", devices, lambda s: s.even(second(s), _MORE))
    yield from sweep.first(f"{prefix}more_odd", devices, lambda s: s.odd(second(s), _MORE_ODD))


@dataclass(frozen=True)
class _Sweep:
    """The sizes that may change, with the least value of each.

    apart: whether sizes that are alike may become different.
    """

    like: Workload
    sizes: Sizes
    floors: dict[str, int]
    apart: bool = True

    @classmethod
    def read(cls, like: Workload, sizes: Sizes) -> _Sweep:
        moved = {name: _moved(sizes, name, sizes.own.shapes or ()) for name in sizes.free}
        leading = {name for name, ranks in moved.items() if 0 in ranks}
        inner = {n for n, m in moved.items() if m and min(_items(sizes.values[n])) >= _LEAST}
        chosen = [name for name in sizes.free if name in leading | inner]
        return cls(like, sizes, {n: _LEADING_FLOOR if n in leading else _FLOOR for n in chosen})

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
        """The sizes that can change on their own; the search covers only a few."""
        found = {}
        for name in list(self.floors)[:_MOST_TRIED]:
            alone = replace(self, floors={name: self.floors[name]})
            if alone._fits(alone.halved(alone.own)) and alone._fits(alone.odd(alone.own)):
                found[name] = self.floors[name]
        return found

    @property
    def own(self) -> _Values:
        """The file's own values of the sizes."""
        return {name: self.sizes.values[name] for name in self.floors}

    def _fits(self, of: _Values) -> bool:
        """Whether `Model` surely takes inputs of these sizes.

        Without elements nothing tells whether integers are indices that are in range: where there
        are some, few elements are tried for real, with sizes that differ as these do.
        """
        if self.sizes.run(of).fault:
            return False
        if not self.sizes.own.integers:
            return True
        few = of if self.is_small(of) else self.odd(self.shrunk())
        return self.is_small(few) and not self.sizes.run(few, really=True).fault

    def workload(self, name: str, of: _Values, devices: tuple[DeviceKind, ...]) -> Workload:
        changed = self.sizes.run(of).changed
        return replace(
            self.like,
            name=name,
            parameters={n: s if isinstance(s, int) else list(s) for n, s in changed.items()},
            unlisted=name in UNLISTED,
            devices=devices,
        )

    def first(
        self, name: str, devices: tuple[DeviceKind, ...], change: _Change
    ) -> Iterator[Workload]:
        """The workload of the widest sweep that `Model` takes, if it takes one."""
        for sweep in self.narrower():
            of = change(sweep)
            limit = _UNLISTED_LIMIT if name in UNLISTED else CPU_LIMIT
            is_allowed = devices == _CUDA or sweep.is_small(of, limit)
            if of != sweep.own and is_allowed and sweep._fits(of):
                yield self.workload(name, of, devices)
                return

    def halved(self, of: dict[str, Size]) -> dict[str, Size]:
        return {name: self._half(name, size) for name, size in of.items()}

    def even(self, of: _Values, share: float) -> _Values:
        """That share of each size, a multiple of a few where it is large."""
        return {name: _each(size, lambda item: _near(item * share)) for name, size in of.items()}

    def odd(self, of: _Values, share: float = _LESS_ODD) -> _Values:
        """Primes near that share, no two alike if possible, so that swapped dimensions show."""
        primes: dict[int, int] = {}
        taken: set[int] = set()

        def change(item: int) -> int:
            prime = None if self.apart else primes.get(item)
            if prime is None:
                prime = primes[item] = _prime_near(item, share, taken)
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

    def is_small(self, of: _Values, limit: int = CPU_LIMIT) -> bool:
        """Whether inputs of these sizes have few elements, as far as that can be told."""
        return self.sizes.run(of).elements <= limit

    def _half(self, name: str, size: Size) -> Size:
        floor = self.floors[name]
        return _each(size, lambda item: max(item // 2, min(item, floor)))


_Change = Callable[[_Sweep], _Values]


def _near(size: float) -> int:
    return _ALIGNED * round(size / _ALIGNED) if size >= _LEAST_ALIGNED else max(1, round(size))


def _prime_near(size: int, share: float, taken: Collection[int]) -> int:
    """One of at most that share of `size`, but for 1 and 2: these stay odd, or become so."""
    target = round(size * share)
    return 1 if size == 1 else prime_below(target + 1 if target > 2 else 2, taken)


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


def _moved(sizes: Sizes, name: str, shapes: tuple[Shape, ...]) -> set[int]:
    """Which dimensions of tensors a size gives, counted from the front."""
    other = sizes.run({name: _each(sizes.values[name], lambda item: item + 1)}).shapes
    pairs = zip(shapes, other or (), strict=False)
    return {at for a, b in pairs for at, (m, n) in enumerate(zip(a, b, strict=False)) if m != n}


def _items(size: Size) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else size


def _each(size: Size, change: Callable[[int], int]) -> Size:
    return change(size) if isinstance(size, int) else tuple(change(item) for item in size)


def _distinct(workloads: list[Workload]) -> Iterator[Workload]:
    """Those that don't repeat an earlier one on the same devices."""
    seen: list[tuple[object, object]] = []
    for workload in workloads:
        key = (workload.parameters, workload.devices)
        if key not in seen:
            seen.append(key)
            yield workload

"""How Model is made from what get_init_inputs() gives, in KernelBench's form or in KernelBook's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class InitCall:
    """Arguments of Model, by position and by name."""

    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> tuple[Any, ...]:
        """All arguments, those by name last."""
        return (*self.arguments, *self.keywords.values())

    def names(self, parameters: list[str]) -> list[str]:
        """Names of all arguments, Model taking these parameters; `init0` for one without a name."""
        count = len(self.arguments)
        names = parameters + [f"init{index}" for index in range(len(parameters), count)]
        return [*names[:count], *self.keywords]

    def replaced(self, values: tuple[Any, ...]) -> InitCall:
        """The same with other values, in the order of `values`."""
        count = len(self.arguments)
        return InitCall(values[:count], dict(zip(self.keywords, values[count:], strict=True)))


def init_calls(given: Any, fits: Callable[[InitCall], bool]) -> list[InitCall]:
    """Ways to make Model of what get_init_inputs() gives that fit its parameters, likeliest first.

    KernelBench's list has one argument an item, KernelBook's is `[[arguments], {by name}]`. A
    dictionary at the end whose keys are parameters is taken for arguments by name, too. None where
    nothing fits.
    """
    return [call for call in _ways(given) if fits(call)]


def _ways(given: Any) -> Iterator[InitCall]:
    if _is_named(given):
        yield InitCall((), given)
    if not isinstance(given, tuple | list):
        return
    first: Any = given[0] if given else None
    last: Any = given[-1] if given else None
    is_list = isinstance(first, tuple | list)
    if _is_named(last):
        if is_list and len(given) == 2:
            yield InitCall(tuple(first), last)
        yield InitCall(tuple(given[:-1]), last)
    yield InitCall(tuple(given))
    if is_list and len(given) == 1:
        yield InitCall(tuple(first))


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def is_number(value: Any) -> bool:
    """Whether a kernel gets such an argument of Model, too: a number, a truth, or some of them."""
    if isinstance(value, tuple | list):
        return all(map(is_number, value))
    return isinstance(value, bool | int | float)

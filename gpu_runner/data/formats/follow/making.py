"""What makes tensors: torch's functions that are told a shape."""

from __future__ import annotations

import math
from typing import Any

from gpu_runner.data.formats.follow.given import Given, Rule
from gpu_runner.data.formats.follow.values import (
    Library,
    Tensor,
    Unfollowed,
    few,
    known,
    tensor,
    whole,
    wholes,
)

_WHOLE = frozenset({"int8", "int16", "int32", "int64", "uint8", "short", "int", "long"})
_SIZED = "empty ones rand randn zeros"


def kind_of(dtype: Any, otherwise: str) -> str:
    """Kind of a tensor's elements by its dtype, which may be left out."""
    if dtype is None:
        return otherwise
    if not isinstance(dtype, Library):
        raise Unfollowed("a dtype that is not known")
    if dtype.name in _WHOLE:
        return "int"
    return "bool" if dtype.name == "bool" else "float"


def _filled(below: int | None) -> Rule:
    def make(given: Given) -> Tensor:
        kind = kind_of(given.kwargs.get("dtype"), "float")
        return Tensor(given.sizes(0, "size", "shape"), kind, below if kind == "int" else None)

    return make


def _alike(below: int | None) -> Rule:
    def make(given: Given) -> Tensor:
        like = given.tensor()
        kind = kind_of(given.kwargs.get("dtype"), like.kind)
        return Tensor(like.shape, kind, below if kind == "int" else None)

    return make


def _full(given: Given) -> Tensor:
    value = given.get(1, "fill_value")
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
    kind = kind_of(given.kwargs.get("dtype"), kind)
    below = value + 1 if kind == "int" and isinstance(value, int) and value >= 0 else None
    size = given.get(0, "size")
    return Tensor((size,) if isinstance(size, int) else wholes(size), kind, below)


def _randint(given: Given) -> Tensor:
    numbers = [v for v in given.args if isinstance(v, int)]
    low = given.kwargs.get("low", numbers[0] if len(numbers) > 1 else 0)
    high = given.kwargs.get("high", numbers[-1] if numbers else None)
    sizes = [v for v in given.args if isinstance(v, tuple | list)]
    size = given.kwargs.get("size", sizes[0] if sizes else None)
    if high is None or whole(high) <= whole(low) or len(numbers) > 2:
        raise Unfollowed("a randint() that cannot be read")
    shape = (size,) if isinstance(size, int) else wholes(size)
    kind = kind_of(given.kwargs.get("dtype"), "int")
    return Tensor(shape, kind, whole(high) if whole(low) >= 0 and kind == "int" else None)


def _count_of(given: Given) -> int:
    """How many numbers arange() gives."""
    names = ("end",) if len(given.args) == 1 else ("start", "end", "step")
    numbers = [given.get(i, name, 1) for i, name in enumerate(names)]
    start, end, step = numbers if len(numbers) == 3 else (0, numbers[0], 1)
    if not all(isinstance(n, int | float) and math.isfinite(n) for n in (start, end, step)):
        raise Unfollowed("an arange() that is not known")
    if step == 0 or (end - start) / step < 0:
        raise Unfollowed("an arange() without end")
    return int(-(-(end - start) // step))


def _arange(given: Given) -> Tensor:
    whole_numbers = all(isinstance(v, int) for v in given.args)
    kind = kind_of(given.kwargs.get("dtype"), "int" if whole_numbers else "float")
    below = given.args[0] if len(given.args) == 1 and kind == "int" else None
    return Tensor((_count_of(given),), kind, below)


def _steps(given: Given) -> Tensor:
    return Tensor((given.whole(2, "steps"),))


def _eye(given: Given) -> Tensor:
    n = given.whole(0, "n")
    return Tensor((n, whole(given.get(1, "m", None) or n)))


def _randperm(given: Given) -> Tensor:
    n = given.whole(0, "n")
    return Tensor((n,), "int", n)


def _normal(given: Given) -> Tensor:
    if given.has(2, "size"):
        return Tensor(wholes(given.get(2, "size")))
    return next(v for v in given.values() if isinstance(v, Tensor))


def _of_data(given: Given) -> Tensor:
    data = given.get(0, "data")
    if isinstance(data, Tensor):
        return Tensor(data.shape, kind_of(given.kwargs.get("dtype"), data.kind), data.below)
    items: list[Any] = []
    shape = _shape_of_data(data, items)
    whole_numbers = bool(items) and all(isinstance(item, int) for item in items)
    kind = kind_of(given.kwargs.get("dtype"), "int" if whole_numbers else "float")
    is_counted = kind == "int" and whole_numbers and min(items) >= 0
    return Tensor(shape, kind, max(items) + 1 if is_counted else None)


def _shape_of_data(data: Any, items: list[Any]) -> tuple[int, ...]:
    if isinstance(known(data), int | float):
        items.append(data)
        return ()
    if not isinstance(data, tuple | list):
        raise Unfollowed("a tensor of data that is not known")
    shapes = {_shape_of_data(item, items) for item in few(data)}
    if len(few(items)) and len(shapes) > 1:
        raise Unfollowed("a tensor of rows that differ")
    return (len(data), *(shapes.pop() if shapes else ()))


def _parameter(given: Given) -> Tensor:
    return tensor(given.get(0, "data"))


_BELOW = {"zeros": 1, "ones": 2}  # one more than the largest value
MAKERS: dict[str, Rule] = {
    **{f"torch.{name}": _filled(_BELOW.get(name)) for name in _SIZED.split()},
    **{f"torch.{name}_like": _alike(_BELOW.get(name)) for name in _SIZED.split()},
    **dict.fromkeys(("torch.tensor", "torch.as_tensor", "torch.asarray"), _of_data),
    **dict.fromkeys(("torch.nn.Parameter", "torch.nn.parameter.Parameter"), _parameter),
    **dict.fromkeys(("torch.linspace", "torch.logspace"), _steps),
    "torch.full": _full,
    "torch.arange": _arange,
    "torch.full_like": _alike(None),
    "torch.randint": _randint,
    "torch.randint_like": _alike(None),
    "torch.randperm": _randperm,
    "torch.normal": _normal,
    "torch.eye": _eye,
}

"""Python's own functions, methods and a little of its library, on values that are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpu_runner.data.formats.follow.given import Given, Rule
from gpu_runner.data.formats.follow.values import (
    LARGEST,
    MOST_ITEMS,
    Class,
    Instance,
    Layer,
    Library,
    Tensor,
    Unfollowed,
    Unknown,
    few,
    known,
    whole,
)

CONSTANTS: dict[str, Any] = {
    **{
        f"{module}.{n}": getattr(math, n)
        for module in ("math", "torch", "numpy")
        for n in ("pi", "inf", "e")
    },
    "builtins.Ellipsis": ...,
}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "builtins.int": int,
    "builtins.float": float,
    "builtins.bool": bool,
    "builtins.str": str,
    "builtins.tuple": tuple,
    "builtins.list": list,
    "builtins.dict": dict,
    "torch.Tensor": Tensor,
    "collections.abc.Iterable": (tuple, list, dict, str),
    "collections.abc.Sequence": (tuple, list, str),
}


def items_of(value: Any) -> list[Any]:
    """What a loop over a value goes through."""
    if isinstance(value, Layer) and value.kind != "ModuleDict":
        return list(value.parts.values())
    if isinstance(value, dict | str | tuple | list | range | set):
        if len(value) > MOST_ITEMS:
            raise Unfollowed(f"more than {MOST_ITEMS} items")
        return list(value)
    if isinstance(value, Layer):
        return list(value.parts)
    raise Unfollowed("a loop over something that is not known")


def is_true(value: Any) -> bool:
    """Whether a condition holds; raises `Unfollowed` where that depends on a tensor's values."""
    if isinstance(value, Tensor | Unknown):
        raise Unfollowed("a condition that is not known")
    return bool(value) if not isinstance(value, Layer) else True


def number(value: Any) -> Any:
    """A number that is not too large."""
    if isinstance(value, complex) or (isinstance(value, int) and abs(value) >= LARGEST):
        raise Unfollowed("a number that is too large")
    return value


def _numbers(given: Given) -> list[Any]:
    values = [
        v for value in given.args for v in (items_of(value) if len(given.args) == 1 else [value])
    ]
    if not values or not all(isinstance(v, int | float) for v in values):
        raise Unfollowed("numbers that are not known")
    return values


def _range(given: Given) -> Any:
    bounds = [whole(value) for value in given.args]
    if not 0 < len(bounds) < 4 or 0 in bounds[2:]:
        raise Unfollowed("a range that is not known")
    return few(range(*bounds))  # type: ignore[arg-type]


def _isinstance(given: Given) -> bool:
    value, kinds = given.args
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if isinstance(kind, Class):
            if isinstance(value, Instance) and value.of and kind in value.of.lineage():
                return True
        elif isinstance(kind, Library) and kind.path.startswith("torch.nn."):
            if isinstance(value, Layer) and value.kind == kind.name:
                return True
        elif not isinstance(kind, Library) or kind.path not in _TYPES:
            raise Unfollowed("a kind that is not known")
        elif isinstance(known(value), _TYPES[kind.path]):
            return True
    return False


def _len(given: Given) -> int:
    value = given.args[0]
    if isinstance(value, Tensor):
        return value.shape[0] if value.shape else whole(None)
    return len(value.parts) if isinstance(value, Layer) else len(items_of(value))


def _sum(given: Given) -> Any:
    total = given.get(1, "start", 0)
    values = items_of(given.args[0])
    if not all(isinstance(v, int | float) for v in (total, *values)):
        raise Unfollowed("a sum of what are no numbers")
    return number(sum(values, total))


def _convert(kind: Callable[[Any], Any]) -> Rule:
    def convert(given: Given) -> Any:
        if not given.args:
            return kind(0)
        value = known(given.args[0])
        if not isinstance(value, int | float | str) or (isinstance(value, str) and len(value) > 32):
            raise Unfollowed("a number that is not known")
        return number(kind(value))

    return convert


def _round(given: Given) -> Any:
    value = given.args[0]
    if not isinstance(value, int | float):
        raise Unfollowed("a number that is not known")
    return round(value, whole(given.args[1])) if len(given.args) > 1 else round(value)


def _dict(given: Given) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for value in given.args:
        found |= value if isinstance(value, dict) else dict(items_of(value))
    return found | dict(given.kwargs)


def _namespace(given: Given) -> Instance:
    return Instance(None, dict(given.kwargs))


def _product(given: Given) -> Any:
    values = items_of(given.args[0])
    if not all(isinstance(v, int | float) for v in values):
        raise Unfollowed("a product of what are no numbers")
    return number(math.prod(values))


def _of_math(name: str) -> Rule:
    def compute(given: Given) -> Any:
        values = [number(known(value)) for value in given.args]
        if not all(isinstance(v, int | float) for v in values):
            raise Unfollowed("a number that is not known")
        return number(getattr(math, name)(*values))

    return compute


_MATH = "ceil cos exp fabs floor gcd isqrt lcm log log10 log2 pow sin sqrt tan tanh trunc"
PYTHON: dict[str, Rule] = {
    **{f"math.{name}": _of_math(name) for name in _MATH.split()},
    **dict.fromkeys(("math.prod",), _product),
    **dict.fromkeys(("types.SimpleNamespace", "argparse.Namespace"), _namespace),
    **dict.fromkeys(("builtins.dict", "collections.OrderedDict"), _dict),
    **dict.fromkeys(
        ("builtins.tuple", "torch.Size"), lambda g: tuple(items_of(g.args[0])) if g.args else ()
    ),
    "builtins.list": lambda g: items_of(g.args[0]) if g.args else [],
    "builtins.set": lambda g: set(items_of(g.args[0])) if g.args else set(),
    "builtins.range": _range,
    "builtins.isinstance": _isinstance,
    "builtins.len": _len,
    "builtins.sum": _sum,
    "builtins.min": lambda g: min(_numbers(g)),
    "builtins.max": lambda g: max(_numbers(g)),
    "builtins.abs": lambda g: abs(_numbers(Given(([g.args[0]],)))[0]),
    "builtins.round": _round,
    "builtins.int": _convert(int),
    "builtins.float": _convert(float),
    "builtins.bool": lambda g: is_true(g.args[0]),
    "builtins.str": lambda g: str(g.args[0]) if isinstance(g.args[0], int | str) else whole(None),
    "builtins.zip": lambda g: [tuple(row) for row in zip(*map(items_of, g.args), strict=False)],
    "builtins.enumerate": lambda g: list(enumerate(items_of(g.args[0]), g.get(1, "start", 0))),
    "builtins.reversed": lambda g: items_of(g.args[0])[::-1],
    "builtins.sorted": lambda g: sorted(_numbers(Given((g.args[0],)))),
    "builtins.any": lambda g: any(map(is_true, items_of(g.args[0]))),
    "builtins.all": lambda g: all(map(is_true, items_of(g.args[0]))),
    "builtins.slice": lambda g: slice(*g.args),
    "builtins.print": lambda g: None,
}
"""Functions by their full names."""


def method_of(value: Any, name: str, given: Given) -> Any:
    """A method of a list, a dictionary or a text."""
    if isinstance(value, list | tuple | dict | str) and (type(value).__name__, name) in _METHODS:
        return _METHODS[type(value).__name__, name](value, given)
    raise Unfollowed(f"a call of {name}()")


def _extend(value: list[Any], given: Given) -> None:
    value.extend(items_of(given.args[0]))
    few(value)


def _append(value: list[Any], given: Given) -> None:
    value.append(given.args[0])
    few(value)


_METHODS: dict[tuple[str, str], Callable[[Any, Given], Any]] = {
    ("list", "append"): _append,
    ("list", "extend"): _extend,
    ("list", "insert"): lambda v, g: v.insert(whole(g.args[0]), g.args[1]),
    ("list", "pop"): lambda v, g: v.pop(whole(g.get(0, "index", -1))),
    ("list", "copy"): lambda v, g: list(v),
    ("list", "index"): lambda v, g: v.index(g.args[0]),
    ("tuple", "index"): lambda v, g: v.index(g.args[0]),
    ("tuple", "numel"): lambda v, g: number(math.prod(map(whole, v))),  # of a torch.Size
    ("dict", "get"): lambda v, g: v.get(g.args[0], g.get(1, "default", None)),
    ("dict", "keys"): lambda v, g: list(v),
    ("dict", "values"): lambda v, g: list(v.values()),
    ("dict", "items"): lambda v, g: list(v.items()),
    ("dict", "update"): lambda v, g: v.update(_dict(g)),
    ("dict", "copy"): lambda v, g: dict(v),
    ("str", "lower"): lambda v, g: v.lower(),
    ("str", "upper"): lambda v, g: v.upper(),
}

"""Arithmetic over a workload's parameters, such as "2 * M * N * K", without executing code."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from gpu_runner.data.codec import DataError

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "ceil": math.ceil,
}
_LARGEST_EXPONENT = 16  # chosen: no formula of work needs more than a cube
_LARGEST = 1e300  # of what is computed on the way: the digits of a whole number cost time
_LENGTH_LIMIT = 4000  # chosen: many times the longest of the catalogue


def evaluate(expression: str, parameters: Mapping[str, Any], field: str = "expression") -> float:
    """Value of `expression` as a finite, non-negative float.

    Names are looked up in `parameters`; numbers, + - * / // % **, parentheses and the functions
    min, max, sqrt, log2 and ceil are allowed. Anything else raises `DataError` naming `field`.
    """
    if len(expression) > _LENGTH_LIMIT:
        raise DataError(field, f"is longer than {_LENGTH_LIMIT} characters")
    try:
        value = float(_value(_parsed(expression), parameters))
    except DataError as error:
        raise DataError(field, f"{error.reason} in {expression!r}") from None
    except (RecursionError, MemoryError):
        raise DataError(field, "is nested too deeply") from None
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, OverflowError) as error:
        raise DataError(field, f"cannot evaluate {expression!r}: {error}") from None
    if not math.isfinite(value) or value < 0:
        raise DataError(field, f"{expression!r} is {value}, not a finite number >= 0")
    return value


@functools.lru_cache(maxsize=16)
def names_in(expression: str) -> tuple[str, ...]:
    """The names that `expression` looks up, in order; none where it cannot be read."""
    if len(expression) > _LENGTH_LIMIT:
        return ()
    try:
        nodes = list(ast.walk(_parsed(expression)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in functions]
    return tuple(dict.fromkeys(names))


@functools.lru_cache(maxsize=16)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _value(node: ast.expr, parameters: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return _lookup(name, parameters)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, parameters)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            right_value = _value(right, parameters)
            if isinstance(op, ast.Pow) and abs(right_value) > _LARGEST_EXPONENT:
                raise DataError("", f"exponent above {_LARGEST_EXPONENT}")
            value = _BINARY[type(op)](_value(left, parameters), right_value)
            if isinstance(value, int) and abs(value) > _LARGEST:
                raise DataError("", f"a value above {_LARGEST:g}")
            return value
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(arg, parameters) for arg in args))
    raise DataError("", f"{ast.unparse(node)!r} is not allowed")


def _lookup(name: str, parameters: Mapping[str, Any]) -> int | float:
    value = parameters.get(name)
    if isinstance(value, int | float):
        return value
    raise DataError("", f"{name!r} is not a number among the workload's parameters")

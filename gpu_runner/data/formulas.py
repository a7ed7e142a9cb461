"""Formulas of a task, and whether they or single workloads are wrong where they have no value."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_runner.data.codec import DataError

_BINARY: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "ceil": math.ceil,
}
_MOST: dict[type[ast.operator], tuple[str, int]] = {
    ast.Pow: ("an exponent", 16),  # chosen: no formula of work needs more than a cube
    ast.LShift: ("a shift", 64),  # chosen: no size needs more bits
}
_LARGEST = 1e300  # of what is computed on the way: the digits of a whole number cost time
_LENGTH_LIMIT = 4000  # chosen: many times the longest of the catalogue


def evaluate(expression: str, parameters: Mapping[str, object], field: str = "expression") -> float:
    """Value of `expression` as a finite, non-negative float.

    Names are looked up in `parameters`; numbers, + - * / // % ** <<, parentheses and the functions
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
            what, limit = _MOST.get(type(op), ("", math.inf))
            if abs(right_value) > limit:
                raise DataError("", f"{what} above {limit}")
            value = _BINARY[type(op)](_value(left, parameters), right_value)
            if isinstance(value, int) and abs(value) > _LARGEST:
                raise DataError("", f"a value above {_LARGEST:g}")
            return value
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(arg, parameters) for arg in args))
    raise DataError("", f"{ast.unparse(node)!r} is not allowed")


def _lookup(name: str, parameters: Mapping[str, object]) -> int | float:
    value = parameters.get(name)
    if isinstance(value, int | float):
        return value
    raise DataError("", f"{name!r} is not a numeric parameter of the workload")


Parameters = Mapping[str, object]
_TRIED = 32  # workloads with which a formula has no value


@dataclass(frozen=True, kw_only=True)
class Formula:
    """An expression over a workload's parameters, and over constants which those may hide.

    field: dotted path of the expression in the task.
    """

    field: str
    expression: str
    constants: Mapping[str, int]

    def value(self, parameters: Parameters) -> float:
        """Its value for a workload; raises `DataError` naming its field."""
        return evaluate(self.expression, {**self.constants, **parameters}, self.field)

    def lacks(self, parameters: Parameters) -> list[str]:
        """Names in it that are no numbers among the parameters."""
        values = {**self.constants, **parameters}
        names = names_in(self.expression)
        return [name for name in names if not isinstance(values.get(name), int | float)]


def formula_errors(
    formulas: Sequence[Formula], workloads: Sequence[tuple[str, Parameters]]
) -> Iterator[DataError]:
    """What is wrong with the formulas, and then what is wrong with single workloads.

    A formula is wrong where no workload has one of its names as a number, or where it has a value
    for none of them. Elsewhere it is the workloads that are, by their place in `workloads`, which
    are pairs of name and parameters.
    """
    apart = [_Lacking() for _ in workloads]
    for formula in formulas:
        lacks = [formula.lacks(parameters) for _, parameters in workloads]
        common = set.intersection(*map(set, lacks)) if lacks else set()
        for name in sorted(common):
            reason = f"uses {name!r}, but no workload sets it to a number: {formula.expression!r}"
            yield DataError(formula.field, reason)
        for index, names in enumerate(lacks):
            apart[index].need(formula.field, [name for name in names if name not in common])
        those = [index for index, names in enumerate(lacks) if not names]
        failed, is_everywhere = _failures(formula, [workloads[index][1] for index in those])
        if is_everywhere and len(those) == len(workloads):
            reason = f"{failed[0]}, in the workload {workloads[0][0]!r}"
            yield DataError(formula.field, reason)
        else:
            for place, reason in failed.items():
                apart[those[place]].refuse(formula.field, reason)
    for index, (_, parameters) in enumerate(workloads):
        yield from apart[index].errors(f"workloads[{index}].parameters", parameters)


def _failures(formula: Formula, workloads: Sequence[Parameters]) -> tuple[dict[int, str], bool]:
    """Why the formula has no value, by the places of the first workloads that give it none.

    And whether it has one for no workload, as far as that was tried: an expression may take long.
    """
    failed: dict[int, str] = {}
    for index, parameters in enumerate(workloads):
        try:
            formula.value(parameters)
        except DataError as error:
            failed[index] = error.reason
            if len(failed) == _TRIED:
                return failed, index + 1 == _TRIED
    return failed, bool(failed) and len(failed) == len(workloads)


class _Lacking:
    """What formulas miss in one workload."""

    def __init__(self) -> None:
        self._needed: dict[str, list[str]] = {}  # fields of formulas by a parameter's name
        self._reasons: list[str] = []

    def need(self, formula: str, names: Sequence[str]) -> None:
        """One formula lacks parameters of these names."""
        for name in names:
            self._needed.setdefault(name, []).append(formula)

    def refuse(self, formula: str, reason: str) -> None:
        """One formula has no value although it has its parameters."""
        self._reasons.append(f"can't be used in {formula}: {reason}")

    def errors(self, field: str, parameters: Parameters) -> Iterator[DataError]:
        for name, formulas in self._needed.items():
            what = "is not a number" if name in parameters else "is missing"
            verb = "needs" if len(formulas) == 1 else "need"
            yield DataError(f"{field}.{name}", f"{what}: {', '.join(formulas)} {verb} it")
        for reason in self._reasons:
            yield DataError(field, reason)

"""Form fields for the parameters of strategies, made from the dataclasses that define them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum

from django import forms

from runs_app.optimiser.evolve.strategies import STRATEGIES, StrategyInfo


def field_name(strategy: str, parameter: str) -> str:
    """Name of the form's field for a parameter of a strategy."""
    return f"{strategy}-{parameter}"


def parameter_fields() -> Iterator[tuple[str, forms.Field]]:
    """A field for every parameter of every strategy, none of them required."""
    for info in STRATEGIES.values():
        hints = typing.get_type_hints(info.parameters)
        for each in dataclasses.fields(info.parameters):
            field = _field(hints[each.name])
            field.required = False
            field.initial = _shown(_default(each))
            field.label = each.name.replace("_", " ").capitalize()
            field.help_text = info.help.get(each.name, "")
            yield field_name(info.name, each.name), field


def read_parameters(info: StrategyInfo, values: Mapping[str, object]) -> dict[str, object]:
    """The strategy's parameters from cleaned values, as JSON; what is left empty has its default.

    A box that is not ticked says no: HTML forms do not send it.
    """
    hints = typing.get_type_hints(info.parameters)
    found = {}
    for each in dataclasses.fields(info.parameters):
        value = values.get(field_name(info.name, each.name))
        if value not in (None, ""):
            found[each.name] = _json(value, _plain(hints[each.name]))
    return found


def _field(hint: object) -> forms.Field:
    kind = _plain(hint)
    if kind is bool:
        return forms.BooleanField()
    if kind is int:
        return forms.IntegerField(error_messages={"invalid": "Enter a whole number."})
    if kind is float:
        return forms.FloatField(error_messages={"invalid": "Enter a number."})
    if choices := _choices(kind):
        return forms.ChoiceField(choices=[(value, value) for value in choices])
    return forms.CharField(max_length=300)


def _plain(hint: object) -> object:
    """The type of a hint, without the None that an optional one allows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(arg for arg in typing.get_args(hint) if arg is not type(None))
    return hint


def _choices(kind: object) -> list[str]:
    if typing.get_origin(kind) is typing.Literal:
        return [str(value) for value in typing.get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    return []


def _default(each: dataclasses.Field[object]) -> object:
    if each.default is not dataclasses.MISSING:
        return each.default
    return each.default_factory() if each.default_factory is not dataclasses.MISSING else None


def _shown(value: object) -> object:
    if isinstance(value, tuple | list):
        return ", ".join(str(_shown(item)) for item in value)
    return value.value if isinstance(value, Enum) else value


def _json(value: object, kind: object) -> object:
    """A cleaned value as JSON; words with commas become a list where the parameter is one."""
    if typing.get_origin(kind) not in (tuple, list):
        return value
    item = typing.get_args(kind)[0]
    parts = [part.strip() for part in str(value).split(",") if part.strip()]
    return [_number(part) if item in (int, float) else part for part in parts]


def _number(text: str) -> object:
    """A number where the text is one; the strategy refuses the rest by the parameter's name."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text

"""Form fields for the parameters of strategies, made from the dataclasses that define them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from django import forms

from runs_app.optimiser.evolve.strategies import STRATEGIES, StrategyInfo
from runs_app.optimiser.selectors.settings import parameter_label

NO_MODELS = "none can be called on this site yet"
"""Why nobody can choose a language model."""


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
            field.initial = getattr(each.default, "value", each.default)
            field.label = parameter_label(each.name).capitalize()
            field.help_text = info.help.get(each.name, "")
            yield field_name(info.name, each.name), field


def read_parameters(info: StrategyInfo, values: Mapping[str, object]) -> dict[str, object]:
    """The strategy's parameters from cleaned values, as JSON; what is left empty has its default.

    A box that is not ticked says no: HTML forms do not send it.
    """
    names = [each.name for each in dataclasses.fields(info.parameters)]
    given = {name: values.get(field_name(info.name, name)) for name in names}
    return {name: value for name, value in given.items() if value not in (None, "")}


def _field(kind: Any) -> forms.Field:
    if kind is bool:
        return forms.BooleanField()
    if kind is int:
        return forms.IntegerField(error_messages={"invalid": "Enter a whole number."})
    if kind is float:
        return forms.FloatField(error_messages={"invalid": "Enter a number."})
    assert issubclass(kind, Enum), "no parameter of a strategy is of another kind"
    return forms.ChoiceField(choices=[(member.value, member.value) for member in kind])

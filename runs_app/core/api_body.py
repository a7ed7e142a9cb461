"""What fields of the API have in common: the values that they take, and what nobody can store."""

from __future__ import annotations

from typing import Any, Self

from ninja import Schema
from pydantic import ConfigDict, field_validator
from pydantic_core import PydanticCustomError

from runs_app.core.text import storable


def one_of(*values: str) -> dict[str, Any]:
    """What the document says about a field that takes these values, for `Field`'s extra.

    Services refuse other values, with a sentence of their own.
    """
    return {"enum": list(values)}


def between(least: float, most: float) -> dict[str, Any]:
    """The same for a number; both ends are included."""
    return {"minimum": least, "maximum": most}


class Body(Schema):
    """A body that the API takes.

    Types are strict: a number isn't a flag, and a string isn't a number.

    If all fields have defaults, `left_out()` is the default of the body itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def left_out(cls) -> Self:
        """What a request without a body means."""
        return cls.model_validate({})

    @field_validator("*", mode="before")
    @classmethod
    def _can_be_stored(cls, value: object) -> object:
        """Refuse NUL and lone surrogates, however deep they lie."""
        if storable(value) != value:
            words = "contains a character that can't be stored, such as NUL"
            raise PydanticCustomError("unstorable", words)
        if isinstance(value, float) and value.is_integer():
            return int(value)  # JSON has one kind of numbers: 4.0 is a whole one
        return value

"""What fields of the API have in common: the values that they take, and what nobody can store."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Self

from ninja import Schema
from pydantic import ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from gpu_runner.data.characters import bad_character


def one_of(*values: str) -> dict[str, Any]:
    """The allowed values of a field, as OpenAPI shows them.

    Services reject any other value, with a message of their own.
    """
    return {"enum": list(values)}


def between(least: float, most: float) -> dict[str, Any]:
    """The allowed range of a number, as OpenAPI shows it; both ends are included."""
    return {"minimum": least, "maximum": most}


class Body(Schema):
    """The body of a request.

    Types are strict: a number isn't a flag, and a string isn't a number.

    If all fields have defaults, `left_out()` is the default of the body itself.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    left_to_services: ClassVar[Collection[str]] = ()
    """Fields whose characters a service checks itself."""

    @classmethod
    def left_out(cls) -> Self:
        """The body of a request that was sent without one: every field has its default value."""
        return cls.model_validate({})

    @field_validator("*", mode="before")
    @classmethod
    def _can_be_stored(cls, value: object, info: ValidationInfo) -> object:
        """Refuse NUL and lone surrogates, however deep they lie."""
        if info.field_name not in cls.left_to_services and (reason := bad_character(value)):
            raise PydanticCustomError("unstorable", "{reason}", {"reason": reason})
        if isinstance(value, float) and value.is_integer():
            return int(value)  # JSON has one kind of numbers: 4.0 is a whole one
        return value

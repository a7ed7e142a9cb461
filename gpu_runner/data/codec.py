"""Turn the frozen dataclasses of this package into JSON values and back."""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

SCHEMA_VERSION = 1
"""Version of every JSON document that this package writes. Raised when a reader must change."""

DEEPEST = 20
"""Levels of lists and objects below a key that this version does not know."""

ERRORS_LIMIT = 50
"""What is wrong with a document: so much of it is told at once."""

T = TypeVar("T")


class DataError(ValueError):
    """A document does not fit its type; `field` is the dotted path of the offending value.

    As a text, `FIELD: REASON`. line: 1-based, where `field` is a file and the line in it is known;
    place: the file and the line in which the value stands, which come first in the text.
    """

    def __init__(self, field: str, reason: str, line: int | None = None, place: str = "") -> None:
        is_said = place == field or place.startswith(f"{field}, line ")
        super().__init__(": ".join(filter(None, [place, "" if is_said else field, reason])))
        self.field = field
        self.reason = reason
        self.line = line
        self.place = place


class DataErrors(DataError):
    """All that is wrong with a document, a line of text each; the field is that of the first."""

    def __init__(self, errors: Iterable[DataError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        super().__init__(first.field, first.reason, first.line, first.place)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


LEFT_OUT = types.MappingProxyType({"left_out": True})
"""Metadata of a field that is not written while it is empty, so that older documents stay equal."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Open:
    """An object with keys that only other versions of this program know: they are kept in `others`.

    A field that is None or empty is not written.
    """

    others: Mapping[str, object] = dataclasses.field(default_factory=dict)


def caught(check: Callable[..., object], *arguments: object) -> Iterator[DataError]:
    """What a check that raises `DataError` says of its arguments."""
    try:
        check(*arguments)
    except DataError as error:
        yield from errors_of(error)


def errors_of(error: DataError) -> tuple[DataError, ...]:
    """All that an error tells, one by one."""
    return error.errors if isinstance(error, DataErrors) else (error,)


def refuse(errors: Iterable[DataError]) -> None:
    """Raise `DataErrors` with the first `ERRORS_LIMIT` of the errors, if there is one."""
    if found := tuple(itertools.islice(errors, ERRORS_LIMIT)):
        raise DataErrors(found)


def encode(value: object) -> Any:
    """Return `value` as plain JSON values (dict, list, str, int, float, bool, None)."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Open):
        known = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        others = known.pop("others")
        written = {name: each for name, each in known.items() if each not in (None, "", (), {})}
        return encode({**written, **others})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {f: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {f.name: encode(each) for f, each in given.items() if each or not f.metadata}
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # "nan", "inf", "-inf": JSON has no such numbers
    return value


def decode(cls: type[T], value: object, field: str = "") -> T:
    """Build `cls` from JSON values.

    Unknown keys, missing keys and wrong types raise `DataError` with the path of the field, or
    `DataErrors` if there are several.
    """
    return typing.cast(T, _decode(cls, value, field, strict=True))


def decode_stored(cls: type[T], value: object, field: str = "") -> T:
    """Build `cls` from what this program itself has stored, by an older version perhaps.

    Fields that have been dropped since are left out. All else is as in `decode`.
    """
    return typing.cast(T, _decode(cls, value, field, strict=False))


@functools.cache
def type_hints(cls: type) -> dict[str, object]:
    """The types of a dataclass's fields, which take long to find."""
    return typing.get_type_hints(cls)


def _decode(hint: object, value: object, field: str, *, strict: bool) -> object:
    if hint is Any or hint is object:
        return value
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(hint, value, field, strict=strict)
    if origin is tuple:
        return _decode_tuple(hint, value, field, strict=strict)
    if origin is not None and issubclass(origin, Mapping):
        return _decode_mapping(hint, value, field, strict=strict)
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(typing.cast(type, hint), value, field, strict=strict)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _decode_enum(hint, value, field)
    return _decode_scalar(typing.cast(type, hint), value, field)


def _decode_union(hint: object, value: object, field: str, *, strict: bool) -> object:
    options = typing.get_args(hint)
    if value is None:
        if type(None) in options:
            return None
        raise DataError(field, "must not be null")
    error: DataError | None = None
    for option in options:
        if option is type(None):
            continue
        try:
            return _decode(option, value, field, strict=strict)
        except DataError as caught:
            error = error or caught
    raise error or DataError(field, "does not match any allowed type")


def _decode_tuple(hint: object, value: object, field: str, *, strict: bool) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise DataError(field, f"must be a list, not {_name(value)}")
    item = typing.get_args(hint)[0]
    return tuple(
        _decode(item, entry, f"{field}[{i}]", strict=strict) for i, entry in enumerate(value)
    )


def _decode_mapping(
    hint: object, value: object, field: str, *, strict: bool
) -> dict[object, object]:
    if not isinstance(value, Mapping):
        raise DataError(field, f"must be an object, not {_name(value)}")
    key_hint, item_hint = typing.get_args(hint)
    return {
        _decode(key_hint, key, field, strict=strict): _decode(
            item_hint, item, f"{field}.{key}", strict=strict
        )
        for key, item in value.items()
    }


def _decode_dataclass(cls: type, value: object, field: str, *, strict: bool) -> object:
    if not isinstance(value, Mapping):
        raise DataError(field, f"must be an object, not {_name(value)}")
    hints = type_hints(cls)
    prefix = f"{field}." if field else ""
    is_open = issubclass(cls, Open)
    unknown = sorted(set(value) - set(hints) | ({"others"} & set(value) if is_open else set()))
    errors: list[DataError] = []
    arguments: dict[str, object] = {}
    if is_open:
        arguments["others"] = {name: shallow(value[name], prefix + name) for name in unknown}
    elif strict:
        errors += [DataError(prefix + name, "is not a known field") for name in unknown]
    for spec in (each for each in dataclasses.fields(cls) if each.name not in arguments):
        try:
            if _is_given(spec, value, prefix):
                hint, path = hints[spec.name], prefix + spec.name
                arguments[spec.name] = _decode(hint, value[spec.name], path, strict=strict)
        except DataError as error:
            errors += errors_of(error)
    if errors:
        raise errors[0] if len(errors) == 1 else DataErrors(errors[:ERRORS_LIMIT])
    return cls(**arguments)


def _is_given(spec: dataclasses.Field[Any], value: Mapping[str, object], prefix: str) -> bool:
    """Whether a field has a value; raises `DataError` if it lacks one that it needs."""
    needed = spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING
    if needed and spec.name not in value:
        raise DataError(prefix + spec.name, "is missing")
    return spec.name in value


def shallow(value: object, field: str, depth: int = DEEPEST) -> object:
    """The value; raises `DataError` if it is nested so deeply that nobody meant it."""
    if isinstance(value, Mapping | list | tuple):
        if not depth:
            raise DataError(field, f"is nested more than {DEEPEST} levels deep")
        for each in value.values() if isinstance(value, Mapping) else value:
            shallow(each, field, depth - 1)
    return value


def _decode_enum(hint: type[enum.Enum], value: object, field: str) -> enum.Enum:
    try:
        return hint(value)
    except ValueError:
        allowed = ", ".join(str(member.value) for member in hint)
        raise DataError(field, f"{value!r} is not one of {allowed}") from None


def _decode_scalar(hint: type, value: object, field: str) -> object:
    if hint is float:
        if isinstance(value, str) and value in ("nan", "inf", "-inf"):
            return float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                raise DataError(field, "is too large for a float") from None
    elif hint is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    elif isinstance(value, hint):
        return value
    raise DataError(field, f"must be {hint.__name__}, not {_name(value)}")


def _name(value: object) -> str:
    return "null" if value is None else type(value).__name__

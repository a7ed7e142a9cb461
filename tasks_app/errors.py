"""Why a request was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec, Self, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class FieldError(ValueError):
    """Something that was sent is wrong: `field` names it, and may be empty; `reason` says why.

    every: field and reason of all that is wrong with what was sent, this one first.
    """

    def __init__(self, field: str, reason: str, also: Iterable[tuple[str, str]] = ()) -> None:
        self.field = field
        self.reason = reason
        self.every = tuple(dict.fromkeys([(field, reason), *also]))
        super().__init__("; ".join(": ".join(filter(None, each)) for each in self.every))

    @property
    def reasons(self) -> str:
        """All reasons, for a place that shows no fields."""
        return "; ".join(reason for _, reason in self.every)

    @classmethod
    def of(cls, every: Iterable[tuple[str, str]]) -> Self:
        """One error for all of these fields and reasons."""
        (field, reason), *also = every
        return cls(field, reason, also)


class Faults:
    """Makes one check after another, so that all that they refuse is told at once."""

    def __init__(self) -> None:
        self.found: list[FieldError] = []

    def of(self, check: Callable[_P, _T], *args: _P.args, **fields: _P.kwargs) -> _T | None:
        """What the check returns; None, and a fault more, if it refuses."""
        try:
            return check(*args, **fields)
        except FieldError as error:
            self.found.append(error)
            return None

    def add(self, field: str, reason: str) -> None:
        """Refuse a field."""
        self.found.append(FieldError(field, reason))

    def tell(self, kind: type[FieldError]) -> None:
        """Raise one error for all faults, of the first one's kind if that is a narrower one."""
        if self.found:
            narrower = isinstance(self.found[0], kind)
            raise (type(self.found[0]) if narrower else kind).of(
                pair for error in self.found for pair in error.every
            )


class CurationError(FieldError):
    """A curator's input is wrong, or this cannot be done now; nothing was stored."""

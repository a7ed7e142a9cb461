"""Why a request was refused; each names the field and says what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from gpu_runner.data.codec import DataError, errors_of
from tasks_app.errors import FieldError


class SubmissionError(FieldError):
    """The input is wrong; nothing was stored."""

    @classmethod
    def about(cls, error: DataError) -> Self:
        """All that is wrong with a document, as a refusal."""
        return cls.of((each.field, each.reason) for each in errors_of(error))


class QuotaExceeded(SubmissionError):
    """The user has too much in the queue, or has entered too much today.

    limit: its name. retry_s: in how many seconds there may be room, where that can be said.
    """

    def __init__(
        self,
        field: str,
        reason: str,
        also: Iterable[tuple[str, str]] = (),
        *,
        limit: str = "",
        retry_s: int | None = None,
    ) -> None:
        super().__init__(field, reason, also)
        self.limit, self.retry_s = limit, retry_s


class NotAllowed(SubmissionError):
    """The user may see the object, but not do this to it."""


class WrongState(NotAllowed):
    """The object is in a state in which this cannot be done to it."""


class Stopped(SubmissionError):
    """An admin has stopped this for everybody; `reason` is what the admin says."""


class EventError(ValueError):
    """An event cannot be true: it names nothing known, or contradicts what is known."""


class Implausible(EventError):
    """An event that no honest runner sends; whoever sent it is in doubt."""

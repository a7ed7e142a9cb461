"""Why a request was refused."""

from __future__ import annotations


class FieldError(ValueError):
    """Something that was sent is wrong: `field` names it, and may be empty; `reason` says why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


class CurationError(FieldError):
    """A curator's input is wrong, or this cannot be done now; nothing was stored."""

"""Why a curator's request was refused."""

from __future__ import annotations


class CurationError(ValueError):
    """The input is wrong, or this cannot be done now; nothing was stored. `field` may be empty."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason

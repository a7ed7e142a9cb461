"""What can go wrong with a call to a language model, and what it may have cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "auth",  # the key, the account or its credit: a person must act
    "refused",  # by the language model or by a content filter
    "unavailable",  # no connection, or a failing endpoint
    "rate_limited",
    "bad_request",  # the endpoint does not accept what was sent, or is not there
    "interrupted",  # broke off after the request had been taken
    "empty",  # an answer without text
    "garbage",  # an answer that is none
]


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one call, as the endpoint reported them, or estimated where it did not.

    `tokens_out` holds all that is paid as output, reasoning that is not shown included.
    """

    tokens_in: int
    tokens_out: int
    estimated: bool = False


class CallError(Exception):
    """A call that gave no usable answer; `reason` is for people and never holds a key.

    `usage` is there if and only if the call may have been paid; `text` is what had arrived.
    `retry_after_s` is the endpoint's own wish; `transient` says that the same call, which was
    certainly not paid, may be sent again; `attempts` counts how often it was sent.
    """

    def __init__(
        self,
        reason: str,
        kind: Kind,
        *,
        usage: Usage | None = None,
        text: str = "",
        retry_after_s: float | None = None,
        transient: bool = False,
    ) -> None:
        """Say what happened; whoever counts attempts sets `attempts`."""
        super().__init__(reason)
        self.reason = reason
        self.kind: Kind = kind
        self.usage = usage
        self.text = text
        self.retry_after_s = retry_after_s
        self.transient = transient
        self.attempts = 0


class CallInterrupted(CallError):
    """The call broke off after the endpoint had taken it: `text` is partial, and may be paid."""

    def __init__(self, reason: str, usage: Usage, text: str = "") -> None:
        super().__init__(reason, "interrupted", usage=usage, text=text)


class MissingKey(CallError):
    """The environment holds no usable key for an endpoint; nothing was sent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "auth")


class StopCall(Exception):
    """Raised by a caller's `on_progress` to end a call now; the call ends as interrupted."""

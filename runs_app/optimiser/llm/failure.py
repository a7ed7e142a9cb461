"""Turns what went wrong below into a `CallError`: what it is, and whether it may have cost."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2
import openai

from runs_app.optimiser.llm.errors import CallError, CallInterrupted, Kind, Usage
from runs_app.optimiser.llm.reading import Garbage
from runs_app.optimiser.llm.wire import Compressed, TooLong

KINDS: dict[int, Kind] = {
    401: "auth",
    402: "auth",  # the account has no credit
    403: "auth",
    408: "unavailable",
    409: "unavailable",
    429: "rate_limited",
    500: "unavailable",
    502: "unavailable",
    503: "unavailable",
    529: "unavailable",  # overloaded
}
SENTENCES: dict[Kind, str] = {
    "auth": "the endpoint does not accept the key or the account",
    "refused": "the endpoint's content filter refused the prompt",
    "unavailable": "the endpoint failed",
    "rate_limited": "the endpoint's rate limit was reached",
    "bad_request": "the endpoint does not accept the request",
}
NOT_FOUND = (
    "the endpoint has no such address or model: check the base URL, which often ends in /v1, and"
    " the API name"
)
UNCONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
UNSENDABLE = (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, httpx2.InvalidURL)
TRANSIENT = frozenset({408, 429, 500, 502, 503, 529})
NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
FILTERED = frozenset({"content_filter", "content_policy_violation"})


def of_status(error: openai.APIStatusError, now: datetime, worst: Usage) -> CallError:
    """An answer with an HTTP status that is not 200: nobody charges for a request that is refused.

    Of HTTP 504 and its like nobody knows what became of the request: `worst` is charged.
    """
    status = error.status_code
    codes = {error.code, error.type}
    if status < 400:
        reason = "the endpoint redirects; use its final address as the base URL"
        return CallError(f"{reason} (HTTP {status})", "bad_request")
    explanation = explained(error.body)
    if status >= 500 and status not in KINDS:
        reason = "the endpoint failed after it accepted the request"
        return CallInterrupted(f"{reason} (HTTP {status}){explanation}", worst)
    kind: Kind = KINDS.get(status, "bad_request")
    if codes & NO_CREDIT:
        kind = "auth"
    elif codes & FILTERED:
        kind = "refused"
    sentence = NOT_FOUND if status == 404 else SENTENCES[kind]
    return CallError(
        f"{sentence} (HTTP {status}){explanation}",
        kind,
        retry_after_s=retry_after_s(error.response.headers, now),
        transient=status in TRANSIENT and kind in ("unavailable", "rate_limited"),
    )


def of_document(error: object) -> CallError:
    """An error that came with HTTP status 200, before anything of an answer."""
    code = str(error.get("code")) if isinstance(error, Mapping) else ""
    status = int(code) if re.fullmatch(r"[45]\d\d", code) else 500
    kind: Kind = KINDS.get(status, "bad_request" if status < 500 else "unavailable")
    return CallError(f"{SENTENCES[kind]}{explained(error)}", kind)


def of_connection(error: Exception, worst: Usage) -> CallError:
    """No answer at all; `worst` is charged unless it is certain that the request did not go out."""
    cause = below(error)
    if isinstance(cause, UNCONNECTED):
        reason = f"could not connect to the endpoint ({_why_unconnected(cause)})"
        return CallError(reason, "unavailable", transient=True)
    if isinstance(cause, httpx2.ReadTimeout):
        return CallInterrupted("the endpoint accepted the request but never answered", worst)
    if isinstance(cause, Compressed):
        reason = "the endpoint compresses its answers even though it was asked not to"
        return CallError(reason, "garbage", usage=worst)
    if isinstance(cause, UNSENDABLE):
        return CallError("the request can't be sent: check the base URL", "bad_request")
    if isinstance(cause, httpx2.RemoteProtocolError) and "without sending" not in str(cause):
        reason = "the server doesn't speak HTTP: check the base URL"
        return CallError(reason, "garbage", usage=worst)
    what = type(cause).__name__
    return CallInterrupted(f"the connection was lost before an answer came ({what})", worst)


def _why_unconnected(cause: BaseException) -> str:
    """What stopped a connection: the reason of the socket below it, where one is known."""
    error: BaseException | None = cause
    while error is not None:
        if isinstance(error, socket.gaierror):
            return "its host name is unknown: check the base URL"
        if isinstance(error, ConnectionRefusedError):
            return "nothing is listening at its address and port: check the base URL"
        error = error.__cause__ or error.__context__
    return type(cause).__name__


def of_answer(error: Exception, usage: Usage, text: str) -> CallError:
    """An answer that had begun, of which `text` came, and did not come to its end."""
    cause = below(error)
    if isinstance(cause, Garbage | TooLong):
        if not text:
            return CallError("the endpoint sent an unreadable answer", "garbage", usage=usage)
        reason = "the answer became unreadable partway through"
    elif isinstance(cause, httpx2.TimeoutException):
        reason = (
            f"the answer stopped partway through ({cause})" if str(cause) else "the answer stopped"
        )
    elif isinstance(cause, httpx2.HTTPError):
        reason = "the connection was lost in the middle of the answer"
    elif isinstance(cause, openai.APIError):
        reason = f"the endpoint cut off its answer{explained(cause.body)}"
    else:
        reason = "the call was stopped"
    return CallInterrupted(reason, usage, text)


def below(error: Exception) -> BaseException:
    """The error of the connection under one of `openai`, else the error itself."""
    return error.__cause__ or error if isinstance(error, openai.APIConnectionError) else error


def explained(body: object) -> str:
    """The endpoint's own words in one line, with a colon in front; "" for none."""
    if isinstance(body, Mapping):
        body = body.get("message") or body.get("error") or body.get("detail") or ""
        body = body.get("message") if isinstance(body, Mapping) else body
    if not isinstance(body, str) or not body.strip():
        return ""
    if body.lstrip().startswith("<"):
        return ": it sent an HTML page"
    line = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", body).strip()
    return f": {line.encode(errors='replace').decode()}"


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that an endpoint asks to wait, from either form of Retry-After; None for none."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())

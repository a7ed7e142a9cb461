"""The HTTP under a call: what is sent, how much is read, and how long silence may last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai

from runs_app.llm.endpoint import Endpoint

CONNECT_S = 10.0
MAX_UNREAD_BYTES = 8 * 2**20  # of one event, or of one JSON answer
MAX_ERROR_BYTES = 64 * 1024
# The client of `openai` adds headers from OPENAI_... variables; a stranger's endpoint gets none.
SENT_HEADERS = {"host", "content-type", "content-length", "transfer-encoding", "accept"}


class TooLong(httpx2.TransportError):
    """More bytes than a sane answer has, with nothing in them that ends."""


class Compressed(httpx2.TransportError):
    """The answer is compressed although a plain one was asked for: its size has no bound."""


class Watch:
    """Follows one answer: whether it began, when it last got further, how much is unread.

    Servers keep a connection alive with comments and blank lines. These are no progress, so the
    reader says by `progress` and `taken` what it could use.
    """

    def __init__(self, clock: Callable[[], float], silence_s: float, ends_at: float) -> None:
        """Allow `silence_s` seconds without progress, and nothing after `ends_at`."""
        self._clock = clock
        self._silence_s = silence_s
        self._ends_at = ends_at
        self._heard_at = clock()
        self._unread = 0
        self.body: WatchedBody | None = None  # there once the answer began

    def progress(self) -> None:
        """The answer got further."""
        self._heard_at = self._clock()

    def taken(self) -> None:
        """What was read so far made sense and is done with."""
        self._unread = 0

    def check(self, chunk: bytes) -> None:
        """Raise what ends the call, if these bytes are too late or too many."""
        now = self._clock()
        if now > self._ends_at:
            raise httpx2.ReadTimeout("the time for this call is over")
        if now - self._heard_at > self._silence_s:
            raise httpx2.ReadTimeout("bytes came, but no answer in them")
        self._unread += len(chunk)
        if self._unread > MAX_UNREAD_BYTES:
            raise TooLong("the answer does not end")

    def begin(self, response: httpx2.Response) -> None:
        """Stand between the connection and whoever reads the answer (a response hook)."""
        is_error = response.status_code >= 300
        if response.headers.pop("content-encoding", "identity") != "identity" and not is_error:
            raise Compressed("the answer is compressed")
        if not isinstance(response.stream, httpx2.SyncByteStream):
            raise TypeError("the answer of a synchronous client has a synchronous body")
        self.body = WatchedBody(response.stream, self, is_error=is_error)
        response.stream = self.body


class WatchedBody(httpx2.SyncByteStream):
    """The bytes of an answer under the eyes of a `Watch`; an error's body may end early."""

    def __init__(self, inner: httpx2.SyncByteStream, watch: Watch, *, is_error: bool) -> None:
        """Read from `inner`."""
        self._inner = inner
        self._chunks = self._short(inner, watch) if is_error else self._checked(inner, watch)
        self._ahead: list[bytes] = []

    def peek(self) -> bytes:
        """The first bytes that are not blank, b"" at the end; they will be read again."""
        for chunk in self._chunks:
            self._ahead.append(chunk)
            if chunk.strip():
                return chunk.strip()
        return b""

    def __iter__(self) -> Iterator[bytes]:
        """What was looked at, then the rest."""
        while self._ahead:
            yield self._ahead.pop(0)
        yield from self._chunks

    def close(self) -> None:
        """Drop the connection, or give it back."""
        self._inner.close()

    @staticmethod
    def _checked(inner: httpx2.SyncByteStream, watch: Watch) -> Iterator[bytes]:
        for chunk in inner:
            watch.check(chunk)
            yield chunk

    @staticmethod
    def _short(inner: httpx2.SyncByteStream, watch: Watch) -> Iterator[bytes]:
        """The status says what happened: where its explanation breaks off, it just ends."""
        size = 0
        try:
            for chunk in inner:
                watch.check(chunk)
                size += len(chunk)
                yield chunk
                if size > MAX_ERROR_BYTES:
                    return
        except httpx2.TransportError:
            return


@contextmanager
def connection(
    endpoint: Endpoint, call_id: str, watch: Watch, silence_s: float
) -> Iterator[openai.OpenAI]:
    """A client of `openai` for one call: no redirects, no retries, no headers but ours.

    It gives up when nothing at all comes for `silence_s`; `watch` sees what comes.
    MissingKey if the endpoint's key is not in the environment.
    """
    key = endpoint.key()

    def only_ours(request: httpx2.Request) -> None:
        kept = {name: value for name, value in request.headers.items() if name in SENT_HEADERS}
        kept |= {"idempotency-key": call_id, "accept-encoding": "identity"}
        kept["user-agent"] = f"kbench openai/{openai.__version__}"
        if key:
            kept["authorization"] = f"Bearer {key}"
        request.headers = httpx2.Headers(kept)

    timeout = httpx2.Timeout(silence_s, connect=min(CONNECT_S, silence_s))
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [only_ours], "response": [watch.begin]}
    with (
        httpx2.Client(timeout=timeout, follow_redirects=False, event_hooks=hooks) as http,
        openai.OpenAI(
            api_key="unused",  # an empty one would be looked up in the environment
            base_url=endpoint.base_url,
            timeout=timeout,
            max_retries=0,
            http_client=http,
        ) as client,
    ):
        yield client

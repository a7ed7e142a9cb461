"""The HTTP under a call: which headers are sent, how much is read, how long silence may last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx2
import openai

from runs_app.optimiser.llm.endpoint import Endpoint

CONNECT_S = 10.0
MAX_UNREAD_BYTES = 8 * 2**20  # of one event, or of one JSON answer
# The client of `openai` adds headers from OPENAI_... variables; a stranger's endpoint gets none.
SENT_HEADERS = {"host", "content-type", "content-length", "transfer-encoding", "accept"}


class TooLong(httpx2.TransportError):
    """More bytes than a sane answer has, with nothing in them that ends."""


class Compressed(httpx2.TransportError):
    """The answer is compressed although a plain one was asked for: its size has no bound."""


class Body(httpx2.SyncByteStream):
    """The bytes of one answer, bounded in size and time.

    `unread` holds those that came since the last event, the whole body if there was none. Comments
    that keep a connection alive are no events, so they do not lengthen the time for silence.
    The body of an error just ends where it breaks off, for its status says what happened.
    """

    def __init__(
        self,
        response: httpx2.Response,
        clock: Callable[[], float],
        silence_s: float,
        ends_at: float,
    ) -> None:
        """Allow `silence_s` seconds without an event, and nothing after `ends_at` on that clock."""
        assert isinstance(response.stream, httpx2.SyncByteStream)
        self._inner, self._is_error = response.stream, not response.is_success
        self._clock = clock
        self._silence_s, self._ends_at = silence_s, ends_at
        self._used_at = clock()
        self.unread = bytearray()

    def __iter__(self) -> Iterator[bytes]:
        """Pass on what comes; raises ReadTimeout, TooLong, and what the connection raises."""
        try:
            yield from self._bounded()
        except httpx2.TransportError:
            if not self._is_error:
                raise

    def _bounded(self) -> Iterator[bytes]:
        for chunk in self._inner:
            now = self._clock()
            if now > self._ends_at:
                raise httpx2.ReadTimeout("this call ran out of time")
            if now - self._used_at > self._silence_s:
                raise httpx2.ReadTimeout("it sent bytes, but no answer")
            self.unread += chunk
            if len(self.unread) > MAX_UNREAD_BYTES:
                raise TooLong("the answer is too long")
            yield chunk

    def use(self) -> None:
        """Forget what came so far: an event was made of it."""
        self._used_at = self._clock()
        self.unread.clear()

    def close(self) -> None:
        """Drop the connection, or give it back."""
        self._inner.close()


@contextmanager
def connection(
    endpoint: Endpoint, call_id: str, clock: Callable[[], float], ends_at: float
) -> Iterator[openai.OpenAI]:
    """A client of `openai` for one call: no redirects, no retries, no headers but ours.

    The bodies of its answers are each a `Body`. MissingKey if the key is not in the environment.
    """
    key = endpoint.key()

    def only_ours(request: httpx2.Request) -> None:
        kept = {name: value for name, value in request.headers.items() if name in SENT_HEADERS}
        kept |= {"idempotency-key": call_id, "accept-encoding": "identity"}
        kept["user-agent"] = f"kbench openai/{openai.__version__}"
        if key:
            kept["authorization"] = f"Bearer {key}"
        request.headers = httpx2.Headers(kept)

    def bounded(response: httpx2.Response) -> None:
        coding = response.headers.pop("content-encoding", "identity")
        if coding != "identity" and response.is_success:
            raise Compressed("the answer is compressed")
        response.stream = Body(response, clock, endpoint.timeout_s, ends_at)

    silence_s = min(endpoint.timeout_s, max(0.001, ends_at - clock()))
    timeout = httpx2.Timeout(silence_s, connect=min(CONNECT_S, silence_s))
    hooks: dict[str, list[Callable[..., object]]] = {"request": [only_ours], "response": [bounded]}
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

"""Jobs and events through Redis, on the site's own hosts.

RQ's queues of a device hold names of jobs. Whoever takes a name asks the site for the job itself,
so that nothing can be read here but what was handed over. The login reaches its own keys alone.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from rq import Queue
from rq.exceptions import DequeueTimeout

from gpu_runner.daemon.sources.contract import Away
from gpu_runner.data import codec, mailbox
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event
from gpu_runner.data.order import Ask, Order, Word
from gpu_runner.data.queue import queue_name

SOCKET_TIMEOUT_S = 5.0  # chosen: Redis answers in milliseconds, so it is gone
_WAIT_S = 1  # for a name; a stop waits for it, as a name that has left its queue is nowhere else
_ANSWER_S = 20.0  # the site answers in milliseconds, or is being restarted
_PAUSE_S = 1.0  # after a job that is for another runner, and goes to the queue's end
_PATIENCE = 30
"""Refusals before they count: the site opens a device's queues at the runner's first heartbeat.

Chosen: half a minute, while a site answers in a second.
"""
STREAM_LENGTH = 200_000
"""Entries that Redis keeps (about): hours of heartbeats, should nobody read them."""


class RedisSource:
    """A login of the runners' Redis."""

    is_endless = True
    unread = 0
    is_brief = True

    def __init__(self, url: str) -> None:
        """Connect when it is used. Raises `DataError` for the address of no runner's login."""
        self._mailbox = unquote(urlsplit(url).username or "")
        if not mailbox.MAILBOX.fullmatch(self._mailbox):
            raise DataError(
                "REDIS_URL",
                "contains no runner login, such as redis://runner-1:PASSWORD@HOST:6379/0;"
                " `manage.py runner_login NAME` on the site's host prints one",
            )
        timeouts = {"socket_connect_timeout": SOCKET_TIMEOUT_S, "socket_timeout": SOCKET_TIMEOUT_S}
        self._connection: Any = redis.Redis.from_url(url, **timeouts)
        self._waiting: Any = redis.Redis.from_url(url, **(timeouts | {"socket_timeout": None}))
        self._pending: Ask | None = None
        self._patience = _PATIENCE

    def take(self, ask: Ask) -> Order | None:
        """The job of the next name in the device's queues; see `Source`."""
        with _or_away():
            if self._pending is None:
                name = self._next_name(ask)
                if not name:
                    return None
                self._pending = dataclasses.replace(ask, job=name)
            return self._answer(self._pending)

    def _next_name(self, ask: Ask) -> str:
        keys = [
            Queue.redis_queue_namespace_prefix + queue_name(ask.device, u) for u in ask.urgencies
        ]
        try:
            _, found = Queue.lpop(keys, _WAIT_S, connection=self._waiting)
        except DequeueTimeout:
            return ""
        except redis.exceptions.NoPermissionError:
            if not self._patience:
                raise
            self._patience -= 1
            time.sleep(_PAUSE_S)
            return ""
        self._patience = _PATIENCE
        return mailbox.job_of(found.decode())

    def _answer(self, ask: Ask) -> Order | None:
        self._say(mailbox.ASK, ask)
        key = mailbox.answer_key(self._mailbox, ask.ticket)
        found = self._waiting.blpop([key], _ANSWER_S)
        if found is None:
            raise Away("the site isn't responding; its `ingest_events` may be down")
        self._pending = None
        document = json.loads(found[1])
        if document is None:
            time.sleep(_PAUSE_S)
            return None
        return codec.decode(Order, document, "order")

    def send(self, event: Event) -> None:
        """Append the event to the login's stream."""
        with _or_away():
            self._say(mailbox.EVENT, event)

    def _say(self, field: str, said: Event | Ask) -> None:
        document = json.dumps(codec.encode(said), separators=(",", ":"), allow_nan=False)
        key = mailbox.events_key(self._mailbox)
        self._connection.xadd(key, {field: document}, maxlen=STREAM_LENGTH, approximate=True)

    def done(self) -> None:
        """Nothing is held."""

    def word(self, runner: str) -> Word:
        """The latest; see `Source`."""
        with _or_away():
            said = self._connection.get(mailbox.word_key(self._mailbox, runner))
        return codec.decode(Word, json.loads(said), "word") if said else Word()


@contextmanager
def _or_away() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as error:
        raise Away(f"Redis is unavailable: {error}") from error


logging.getLogger("rq").setLevel(logging.WARNING)

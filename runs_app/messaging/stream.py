"""Read the runners' events from the Redis stream: acknowledged after the commit, never lost."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.exceptions import ResponseError

from gpu_runner.data.codec import DataError
from gpu_runner.data.event import EVENT_STREAM, Event, decode_event

log = logging.getLogger(__name__)

GROUP = "site"
DEAD_LETTERS = f"{EVENT_STREAM}:dead"
FIELD = b"event"
BATCH = 200
_DEAD_KEPT = 10_000
_ABANDONED_MS = 30_000  # another ingester's entry, unacknowledged for this long, is taken over


@dataclass(frozen=True)
class Entry:
    """An entry of the stream, not yet read as an event."""

    id: bytes
    fields: dict[bytes, bytes]

    def event(self) -> Event:
        """The event; raises `DataError` if the entry does not hold one."""
        try:
            document = json.loads(self.fields.get(FIELD, b""))
        except (ValueError, RecursionError) as error:
            raise DataError("event", f"is not JSON: {error}") from None
        return decode_event(document)


class EventStream:
    """One reader of the stream, in the site's consumer group."""

    def __init__(self, redis: Redis, consumer: str) -> None:
        """Read as `consumer`; entries that it left unacknowledged before come first."""
        self.redis = redis
        self.consumer = consumer
        self.backlog = True

    def open(self) -> None:
        """Make the stream and the group if they do not exist; begin with the backlog."""
        self.backlog = True
        try:
            self.redis.xgroup_create(EVENT_STREAM, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def read(self, block_ms: int) -> list[Entry]:
        """The next entries; an empty list after `block_ms` without any."""
        self._take_over()
        start = "0" if self.backlog else ">"
        answer: Any = self.redis.xreadgroup(
            GROUP,
            self.consumer,
            {EVENT_STREAM: start},
            count=BATCH,
            block=None if self.backlog else block_ms,
        )
        entries = _entries(answer)
        if self.backlog and not entries:
            self.backlog = False
            return self.read(block_ms)
        return entries

    def done(self, *entries: Entry) -> None:
        """Forget entries that are in the database now."""
        ids = [entry.id for entry in entries]
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.xack(EVENT_STREAM, GROUP, *ids)
            pipe.xdel(EVENT_STREAM, *ids)
            pipe.execute()

    def set_aside(self, entry: Entry, reason: str) -> None:
        """Move an entry that can never be recorded to the stream of dead letters."""
        log.error("event %s set aside: %s", entry.id.decode(), reason)
        with self.redis.pipeline(transaction=True) as pipe:
            fields: Any = {**entry.fields, b"id": entry.id, b"reason": reason[:2000].encode()}
            pipe.xadd(DEAD_LETTERS, fields, maxlen=_DEAD_KEPT, approximate=True)
            pipe.xack(EVENT_STREAM, GROUP, entry.id)
            pipe.xdel(EVENT_STREAM, entry.id)
            pipe.execute()

    def _take_over(self) -> None:
        claimed: Any = self.redis.xautoclaim(
            EVENT_STREAM, GROUP, self.consumer, _ABANDONED_MS, count=BATCH, justid=True
        )
        self.backlog = self.backlog or bool(claimed)


def _entries(answer: Any) -> list[Entry]:
    """Entries of an XREADGROUP answer, whose shape differs between RESP2 and RESP3."""
    if not answer:
        return []
    pairs = answer.values() if isinstance(answer, dict) else (part[1] for part in answer)
    return [
        Entry(identity, fields or {}) for batch in pairs for identity, fields in _flatten(batch)
    ]


def _flatten(batch: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    nested = batch and isinstance(batch[0], list)
    return [pair for part in batch for pair in part] if nested else list(batch)

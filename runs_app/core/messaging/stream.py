"""Read what runners say, each in a stream of its own: acknowledged after the commit, never lost."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from redis import Redis
from redis.exceptions import ResponseError

from gpu_runner.data import codec, mailbox
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.order import Ask
from runs_app.core.text import printable
from runs_app.models import RunnerToken

log = logging.getLogger(__name__)

T = TypeVar("T")

GROUP = "site"
DEAD_LETTERS = "kbench:dead-letters"
BATCH = 200  # chosen: entries of each stream; of all together while one holds more than that
_DEAD_KEPT = 10_000
_LONGEST_DEAD = 10_000  # bytes that are kept of what could not be recorded
_LONGEST_REASON = 2000  # characters
MOST_BYTES = 8 << 20  # chosen: the largest results have a few MiB
_MUCH = MOST_BYTES  # bytes in a stream; it is read entry by entry
_MOST_BYTES_BEFORE = 64 << 10  # chosen: of all that a runner says before a job's end
_ABANDONED_MS = 30_000  # another ingester's entry, unacknowledged for this long, is taken over
_SAID = {mailbox.EVENT.encode(), mailbox.ASK.encode()}
_LOOK_S = 1.0  # so long it may take until a new token is heard


@dataclass(frozen=True)
class Entry:
    """An entry of a token's stream, not yet read."""

    token: RunnerToken
    id: bytes
    fields: dict[bytes, bytes]

    @property
    def is_ask(self) -> bool:
        """Whether a runner asks for a job, and waits for an answer."""
        return mailbox.ASK.encode() in self.fields

    def said(self) -> Event | Ask:
        """The event or the ask; raises `DataError` if the entry holds neither."""
        return self._read(mailbox.ASK, Ask) if self.is_ask else self.event()

    def event(self) -> Event:
        """The event; raises `DataError` if the entry holds none."""
        return self._read(mailbox.EVENT, Event)

    def _read(self, field: str, kind: type[T]) -> T:
        text = self.fields.get(field.encode(), b"")
        if len(text) > MOST_BYTES:
            raise DataError(field, f"is larger than {MOST_BYTES >> 20} MiB")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(field, f"is not JSON: {error}") from None
        said = codec.decode(kind, document)
        is_end = isinstance(said, Event) and said.kind is EventKind.FINISHED
        if len(text) > _MOST_BYTES_BEFORE and not is_end:
            raise DataError(field, f"is larger than {_MOST_BYTES_BEFORE >> 10} KiB")
        return said


class Streams:
    """One reader of all streams, in the site's consumer group."""

    def __init__(
        self,
        redis: Redis,
        consumer: str,
        tokens: Callable[[], list[RunnerToken]],
    ) -> None:
        """Read as `consumer`; entries that it left unacknowledged before come first.

        tokens: those whose streams are read, asked for again and again. `behind` are those who
        said more than was read last: they may be heard late, and others not for that.
        """
        self.redis = redis
        self.consumer = consumer
        self.backlog = True
        self.behind: set[RunnerToken] = set()
        self._heard = 1  # how many streams had entries last
        self._tokens = tokens
        self._looked_at = -_LOOK_S
        self._known: dict[bytes, RunnerToken] = {}

    def open(self) -> None:
        """Begin with the backlog, and make streams and groups again that are no more."""
        self.backlog = True
        self._known, self._looked_at = {}, -_LOOK_S

    def _look(self) -> None:
        """Learn of new tokens, and of entries that another ingester has abandoned."""
        if time.monotonic() - self._looked_at < _LOOK_S:
            return
        self._looked_at = time.monotonic()
        known = {mailbox.events_key(each.mailbox).encode(): each for each in self._tokens()}
        for key in known.keys() - self._known.keys():
            self._make_group(key)
        self._known = known
        for key in known:
            claimed: object = self.redis.xautoclaim(
                key, GROUP, self.consumer, _ABANDONED_MS, count=BATCH, justid=True
            )
            self.backlog = self.backlog or bool(claimed)

    def _make_group(self, key: bytes) -> None:
        """Make stream and group, unless they are there: a Redis that is full makes nothing."""
        try:
            if any(group["name"] == GROUP.encode() for group in self.redis.xinfo_groups(key)):
                return
        except ResponseError:  # there is no such stream
            pass
        self.redis.xgroup_create(key, GROUP, id="0", mkstream=True)

    def read(self, block_ms: int) -> list[Entry]:
        """The next entries, in each stream in order; an empty list after `block_ms` without any."""
        self._look()
        if not self._known:
            self.backlog = False
            time.sleep(block_ms / 1000)
            return []
        start = "0" if self.backlog else ">"
        count = self._count()
        answer: object = self.redis.xreadgroup(
            GROUP,
            self.consumer,
            dict.fromkeys(self._known, start),
            count=count,
            block=None if self.backlog else block_ms,
        )
        entries = self._entries(answer)
        read = Counter(entry.token for entry in entries)
        self.behind = {token for token in read if read[token] >= count}
        self._heard = max(1, len(read))
        if self.backlog and not entries:
            self.backlog = False
            return self.read(block_ms)
        return entries

    def _count(self) -> int:
        """How many entries of each stream to read, so that nobody waits long for others."""
        with self.redis.pipeline(transaction=False) as pipe:
            for key in self._known:
                pipe.memory_usage(key)
            if any((size or 0) > _MUCH for size in pipe.execute()):
                return 1
        return max(1, BATCH // self._heard) if self.behind else BATCH

    def done(self, *entries: Entry) -> None:
        """Forget entries that are in the database now."""
        with self.redis.pipeline(transaction=True) as pipe:
            for entry in entries:
                key = mailbox.events_key(entry.token.mailbox)
                pipe.xack(key, GROUP, entry.id)
                pipe.xdel(key, entry.id)
            pipe.execute()

    def set_aside(self, entry: Entry, reason: str) -> None:
        """Move an entry that can never be recorded to the stream of dead letters.

        It is forgotten first: a Redis that is full keeps no letter, and has to get empty.
        """
        why = printable(reason[:_LONGEST_REASON])
        log.error("event %s from runner %s was set aside: %s", entry.id.decode(), entry.token, why)
        self.done(entry)
        said = {name: entry.fields[name][:_LONGEST_DEAD] for name in _SAID & entry.fields.keys()}
        fields: Any = {**said, b"id": entry.id, b"token": entry.token.name, b"reason": why}
        try:
            self.redis.xadd(DEAD_LETTERS, fields, maxlen=_DEAD_KEPT, approximate=True)
        except ResponseError as error:
            log.warning("the event that was set aside could not be kept: %s", error)

    def _entries(self, answer: Any) -> list[Entry]:
        """Entries of an XREADGROUP answer, whose shape differs between RESP2 and RESP3."""
        pairs = answer.items() if isinstance(answer, dict) else (answer or [])
        return [
            Entry(self._known[key], identity, fields or {})
            for key, batch in pairs
            for identity, fields in _flatten(batch)
        ]


def _flatten(batch: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    nested = batch and isinstance(batch[0], list)
    return [pair for part in batch for pair in part] if nested else list(batch)

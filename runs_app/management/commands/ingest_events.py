"""Record the runners' events, and look after what nobody works on any more."""

from __future__ import annotations

import itertools
import logging
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.utils import timezone
from redis.exceptions import RedisError

from gpu_runner.data.codec import DataError
from gpu_runner.data.order import Ask
from runs_app.core import hooks
from runs_app.core.errors import EventError
from runs_app.core.messaging import broadcast, orders
from runs_app.core.messaging.stream import Entry, Streams
from runs_app.core.runners.events import Sender, record_event, record_events, refuse
from runs_app.core.runners.handing import hand_over
from runs_app.core.runners.reconcile import MOST, reconcile
from runs_app.core.runners.tokens import forget_revoked, known_tokens
from runs_app.models import RunnerToken
from runs_app.optimiser.services.reconcile_runs import reconcile_runs

log = logging.getLogger(__name__)

_READER = "ingest"  # its name in the consumer group
_BLOCK_MS = 1000
_RECONCILE_S = 5.0
_PAUSE_S = 1.0  # before another try, when Redis or the database is away
_TRIES = 5  # chosen: a lock, or a database that is restarted, is over by then
_GAP = timedelta(seconds=10)  # chosen: no step takes so long, unless the process stood still


class Command(BaseCommand):
    """`manage.py ingest_events`: runs until SIGTERM or SIGINT."""

    help = "Record runners' events until stopped. Run one per site."
    stopping = False
    listening_since: datetime | None = None
    up_to_date_at: datetime | None = None
    reconciled_at = 0.0
    _failures: Counter[bytes]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--drain", action="store_true", help="exit when no events are left")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._stop)
        self._failures = Counter()
        stream = Streams(orders.connection(), _READER, known_tokens)
        is_open = False
        block_ms = 1 if options["drain"] else _BLOCK_MS
        while not self.stopping:
            try:
                if not is_open:
                    forget_revoked()
                    stream.open()
                    is_open = True
                if not self._step(stream, block_ms) and options["drain"]:
                    return
            except RedisError as error:
                is_open, self.listening_since = False, None
                self._wait("Redis", error)
            except (OperationalError, InterfaceError) as error:
                stream.backlog, self.listening_since = True, None
                connection.close()
                self._wait("the database", error)

    def _step(self, stream: Streams, block_ms: int) -> int:
        """Record one batch; if that was all there is, reconcile. Returns the batch's size."""
        entries = stream.read(block_ms)
        for together in _batches(entries):
            if self.stopping:
                break
            if not self._record_together(stream, together):
                for entry in together:
                    self._record(stream, entry)
        if not stream.backlog:
            self._reconcile(stream.behind)
            close_old_connections()
        return len(entries)

    def _record_together(self, stream: Streams, entries: Sequence[Entry]) -> bool:
        """Record a batch in one transaction; False if one of them, whichever, cannot be."""
        if len(entries) < 2:
            return False
        try:
            events = [(Sender(token=entry.token), entry.event()) for entry in entries]
            with broadcast.together():
                record_events(events=events, now=timezone.now())
        except Exception as error:
            log.debug("recording a batch's events one by one: %s", error)
            return False
        stream.done(*entries)
        return True

    def _record(self, stream: Streams, entry: Entry) -> None:
        try:
            self._heed(entry)
        except (DataError, EventError) as error:
            stream.set_aside(entry, str(error))
        except RedisError:
            raise  # the event is good: it waits until Redis is back
        except (OperationalError, InterfaceError) as error:
            if not self._is_at_fault(entry):
                raise  # so is this, until the database is back
            stream.set_aside(entry, f"the database rejected it: {error}")
        except Exception as error:
            log.exception("event %s cannot be recorded", entry.id.decode())
            stream.set_aside(entry, f"{type(error).__name__}: {error}")
        else:
            stream.done(entry)

    def _heed(self, entry: Entry) -> None:
        """Answer an ask, or record an event; raises what refuses it, once that is seen to."""
        said, now = entry.said(), timezone.now()
        try:
            if isinstance(said, Ask):
                order = hand_over(token=entry.token, ask=said, now=now)
                orders.answer(entry.token, said.ticket, order)
            else:
                record_event(event=said, sender=Sender(token=entry.token), now=now)
        except (DataError, EventError) as error:
            if isinstance(said, Ask):
                orders.answer(entry.token, said.ticket, None)
            else:
                refuse(event=said, sender=Sender(token=entry.token), error=error, now=now)
            raise

    def _is_at_fault(self, entry: Entry) -> bool:
        """Whether the database fails at this entry again and again, and answers otherwise."""
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except (OperationalError, InterfaceError):
            return False
        self._failures[entry.id] += 1
        return self._failures[entry.id] >= _TRIES

    def _reconcile(self, unheard: Collection[RunnerToken]) -> None:
        now = timezone.now()
        if self.up_to_date_at is None or now - self.up_to_date_at > _GAP:
            self.listening_since = None  # what was said meanwhile may still have to be read
        self.up_to_date_at = now
        self.listening_since = self.listening_since or now
        if time.monotonic() - self.reconciled_at < _RECONCILE_S:
            return
        self.reconciled_at = time.monotonic()
        count = reconcile(now=now, listening_since=self.listening_since, unheard=unheard, most=MOST)
        if count:
            log.warning("%d lost or forgotten job(s) were picked up again", count)
        hooks.tick.send_robust(sender=Command, now=now)  # one that fails is logged
        count = reconcile_runs(now=now, listening_since=self.listening_since)
        if count:
            log.warning("%d interrupted or forgotten call(s) were picked up again", count)

    def _wait(self, what: str, error: Exception) -> None:
        log.warning("%s is unavailable, trying again: %s", what, error)
        time.sleep(_PAUSE_S)

    def _stop(self, *_: object) -> None:
        self.stopping = True


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Neighbouring events together, and each ask by itself: it is answered after its commit."""
    for is_ask, group in itertools.groupby(entries, key=lambda entry: entry.is_ask):
        if is_ask:
            yield from ([entry] for entry in group)
        else:
            yield list(group)

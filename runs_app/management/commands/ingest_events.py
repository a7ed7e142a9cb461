"""Record the runners' events, and look after what nobody works on any more."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.utils import timezone
from redis.exceptions import RedisError

from gpu_runner.data.codec import DataError
from runs_app.challenges.settle import settle_challenges
from runs_app.errors import EventError
from runs_app.messaging import broadcast, queues
from runs_app.messaging.stream import BATCH, Entry, EventStream
from runs_app.notices.delivery import look_after
from runs_app.operations.statistics import gather_statistics
from runs_app.runners.events import record_event, record_events
from runs_app.runners.reconcile import MOST, reconcile
from runs_app.runners.reconcile_runs import reconcile_runs

log = logging.getLogger(__name__)

_BLOCK_MS = 1000
_RECONCILE_S = 5.0
_PAUSE_S = 1.0  # before another try, when Redis or the database is away


class Command(BaseCommand):
    """`manage.py ingest_events`: runs until SIGTERM or SIGINT."""

    help = "Record the events of runners until stopped; run one of these for each site."
    stopping = False
    listening_since: datetime | None = None
    reconciled_at = 0.0

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--consumer", default="ingest", help="name of this reader within the consumer group"
        )
        parser.add_argument("--drain", action="store_true", help="end as soon as no event is left")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read, record, acknowledge; wait out the absence of Redis and of the database."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._stop)
        stream = EventStream(queues.connection(), options["consumer"])
        is_open = False
        block_ms = 1 if options["drain"] else _BLOCK_MS
        while not self.stopping:
            try:
                if not is_open:
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

    def _step(self, stream: EventStream, block_ms: int) -> int:
        """Record one batch; if that was all there is, reconcile. Returns the batch's size."""
        entries = stream.read(block_ms)
        if not self._record_together(stream, entries):
            for entry in entries:
                if self.stopping:
                    break
                self._record(stream, entry)
        if len(entries) < BATCH and not stream.backlog:
            self._reconcile()
            close_old_connections()
        return len(entries)

    def _record_together(self, stream: EventStream, entries: Sequence[Entry]) -> bool:
        """Record a batch in one transaction; False if one of them, whichever, cannot be."""
        if len(entries) < 2:
            return False
        try:
            events = [entry.event() for entry in entries]
            with broadcast.together():
                record_events(events=events, now=timezone.now())
        except Exception as error:
            log.debug("a batch is recorded one by one: %s", error)
            return False
        stream.done(*entries)
        return True

    def _record(self, stream: EventStream, entry: Entry) -> None:
        try:
            record_event(event=entry.event(), now=timezone.now())
        except (DataError, EventError) as error:
            stream.set_aside(entry, str(error))
        except (OperationalError, InterfaceError, RedisError):
            raise  # the event is good: it waits until the database is back
        except Exception as error:
            log.exception("event %s cannot be recorded", entry.id.decode())
            stream.set_aside(entry, f"{type(error).__name__}: {error}")
        else:
            stream.done(entry)

    def _reconcile(self) -> None:
        now = timezone.now()
        self.listening_since = self.listening_since or now
        if time.monotonic() - self.reconciled_at < _RECONCILE_S:
            return
        self.reconciled_at = time.monotonic()
        gather_statistics()
        count = reconcile(now=now, listening_since=self.listening_since, most=MOST)
        if count:
            log.warning("%d lost or forgotten job(s) were taken up again", count)
        look_after(now=now)
        settle_challenges(now=now)
        count = reconcile_runs(now=now, listening_since=self.listening_since)
        if count:
            log.warning("%d interrupted or forgotten call(s) were taken up again", count)

    def _wait(self, what: str, error: Exception) -> None:
        log.warning("%s is away, trying again: %s", what, error)
        time.sleep(_PAUSE_S)

    def _stop(self, *_: Any) -> None:
        self.stopping = True

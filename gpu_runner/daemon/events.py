"""Sends events to the Redis stream, and keeps those that must not be lost on disk until sent."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
import time
import uuid
from pathlib import Path

import redis

from gpu_runner.data import codec
from gpu_runner.data.event import EVENT_STREAM, Event, decode_event

logger = logging.getLogger(__name__)

STREAM_LENGTH = 200_000
"""Entries that Redis keeps (about): hours of heartbeats, should nobody read them."""

_FIRST_PAUSE_S = 0.1  # chosen: Redis that restarts is back within some of these
_LONGEST_PAUSE_S = 2.0  # chosen: events come this late at most once Redis is back


class EventStream:
    """The upward door: one entry an event, with the one field `event`, which holds its JSON."""

    def __init__(self, connection: redis.Redis) -> None:
        """Send over `connection`."""
        self._connection = connection

    def send(self, event: Event) -> None:
        """Append the event. Raises `redis.RedisError` while Redis is away."""
        document = json.dumps(codec.encode(event), separators=(",", ":"), allow_nan=False)
        self._connection.xadd(
            EVENT_STREAM, {"event": document}, maxlen=STREAM_LENGTH, approximate=True
        )


class Spool:
    """A folder of events that are not known to have been sent yet, one file each, in order."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`, making it if need be."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, event: Event) -> Path:
        """Write the event so that it survives a crash; return its file."""
        path = self._folder / f"{time.time_ns():020d}-{uuid.uuid4().hex}.json"
        partial = path.with_suffix(".partial")
        with partial.open("w") as file:
            json.dump(codec.encode(event), file, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
        return path

    def flush(self, stream: EventStream) -> int:
        """Send what is kept, oldest first, and forget it; return how many events were sent.

        Raises `redis.RedisError` while Redis is away. An event may be sent twice, by two processes
        at once; whoever reads the stream knows it by (job_id, attempt, seq).
        """
        sent = 0
        for path in sorted(self._folder.glob("*.json")):
            try:
                event = decode_event(json.loads(path.read_text()))
            except FileNotFoundError:
                continue  # another process has just sent it
            except ValueError as error:
                logger.error("cannot read the kept event %s, set aside: %s", path, error)
                path.rename(path.with_suffix(".unreadable"))
                continue
            stream.send(event)
            path.unlink(missing_ok=True)
            sent += 1
        return sent

    def close(self) -> None:
        """Remove the folder, unless something is kept in it."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()


class Reporter:
    """Sends one job's events from a thread, so that the work never waits for Redis."""

    def __init__(self, stream: EventStream, spool: Spool) -> None:
        """Start the thread."""
        self._stream = stream
        self._spool = spool
        self._queue: queue.SimpleQueue[tuple[Event, Path | None] | None] = queue.SimpleQueue()
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="reporter", daemon=True)
        self._thread.start()

    def publish(self, event: Event, *, keep: bool = False) -> None:
        """Send the event soon. With `keep` it is on disk when this returns, and never lost."""
        self._queue.put((event, self._spool.keep(event) if keep else None))

    def close(self, timeout_s: float) -> None:
        """Wait until everything is sent, at most `timeout_s`; then only kept events live on."""
        self._queue.put(None)
        self._thread.join(timeout_s)
        self._abandoned.set()
        self._thread.join()

    def _send_all(self) -> None:
        while (entry := self._queue.get()) is not None:
            event, kept = entry
            if self._send(event) and kept is not None:
                kept.unlink(missing_ok=True)

    def _send(self, event: Event) -> bool:
        pause_s = _FIRST_PAUSE_S
        while not self._abandoned.is_set():
            try:
                self._stream.send(event)
            except redis.RedisError as error:
                logger.warning("cannot send the event %s yet: %s", event.kind, error)
                self._abandoned.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                return True
        return False


def report_or_keep(event: Event, stream: EventStream, spool: Spool) -> None:
    """Send the event after all that are kept, or keep it as well while Redis is away."""
    try:
        spool.flush(stream)
        stream.send(event)
    except redis.RedisError as error:
        logger.warning("Redis is away, the event %s is kept: %s", event.kind, error)
        spool.keep(event)

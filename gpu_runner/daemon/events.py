"""Sends events to the site, and keeps those that must not be lost on disk until they are sent."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

from gpu_runner.daemon.sources.contract import Away, Refused, Source
from gpu_runner.data import codec
from gpu_runner.data.event import Event, EventKind

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.1  # chosen: a site that restarts is back within some of these
_LONGEST_PAUSE_S = 2.0  # chosen: events come this late at most once the site is back


class Outbox:
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

    def flush(self, source: Source) -> int:
        """Send what is kept, oldest first, and forget it; return how many events were sent.

        Raises `Away`. An event may be sent twice, by two processes at once; the site knows it by
        (job_id, attempt, seq).
        """
        sent = 0
        for path in sorted(self._folder.glob("*.json")):
            try:
                event = codec.decode(Event, json.loads(path.read_text()))
            except FileNotFoundError:
                continue  # another process has just sent it
            except ValueError as error:
                logger.error("cannot read the saved event %s, so it was set aside: %s", path, error)
                path.rename(path.with_suffix(".unreadable"))
                continue
            tell(event, source)
            path.unlink(missing_ok=True)
            sent += 1
        return sent

    def close(self) -> None:
        """Remove the folder, unless something is kept in it."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()


class Reporter:
    """Sends one job's events from a thread, so that the work never waits for the site."""

    def __init__(self, source: Source, outbox: Outbox) -> None:
        """Start the thread."""
        self._source = source
        self._outbox = outbox
        self._queue: queue.SimpleQueue[tuple[Event, Path | None] | None] = queue.SimpleQueue()
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._send_all, name="reporter", daemon=True)
        self._thread.start()

    def publish(self, event: Event, *, keep: bool = False) -> None:
        """Send the event soon. With `keep` it is on disk when this returns, and never lost."""
        self._queue.put((event, self._outbox.keep(event) if keep else None))

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
                tell(event, self._source)
            except Away as error:
                logger.warning("cannot send the event %s yet: %s", event.kind, error)
                self._abandoned.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                return True
        return False


def tell(event: Event, source: Source) -> None:
    """Send an event. If the site will never take an outcome, tell it why it gets none.

    Raises `Away`.
    """
    try:
        source.send(event)
    except Refused as error:
        logger.error("dropped the event %s of %s: %s", event.kind, event.job_id, error)
        if event.kind is EventKind.FINISHED:
            lost = replace(event, kind=EventKind.LOST, payload={"reason": f"its outcome: {error}"})
            with contextlib.suppress(Refused):
                source.send(lost)


def report_or_keep(event: Event, source: Source, outbox: Outbox) -> None:
    """Send the event after all that are kept, or keep it as well while the site is away."""
    try:
        outbox.flush(source)
        tell(event, source)
    except Away as error:
        logger.warning(
            "the site is unavailable, so the event %s was saved for later: %s", event.kind, error
        )
        outbox.keep(event)

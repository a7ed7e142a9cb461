"""Jobs and events in a folder, for a host that reaches no site."""

from __future__ import annotations

import json
import logging
import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from gpu_runner.daemon.sources.contract import Away
from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import ENDS, Event
from gpu_runner.data.order import Ask, Order, Word
from gpu_runner.data.spool import SpoolFolder

logger = logging.getLogger(__name__)


class FolderSource:
    """A spool's jobs, the oldest first. Each is locked while somebody works at it."""

    is_endless = False
    is_brief = True

    def __init__(self, folder: Path, device: str) -> None:
        """Raises `DataError` for a folder that is no spool, or one of another device."""
        self._spool = SpoolFolder(folder)
        manifest = self._spool.manifest()
        if manifest is None:
            raise DataError("spool", f"{folder} has no spool.json, so it is not a spool")
        if manifest.device != device:
            raise DataError("spool", f"its jobs are for {manifest.device}; this host has {device}")
        self._paths = self._spool.job_files()
        self._held = ExitStack()
        self._file: IO[bytes] | None = None
        self.unread = 0

    def take(self, ask: Ask) -> Order | None:
        """The next job that nobody has done or is at; None if none is left."""
        while self._paths:
            path = self._paths.pop(0)
            try:
                order = self._spool.job(path)
                self._file = self._held.enter_context(self._spool.held(order.name))
            except DataError as error:
                logger.error("left out: %s", error)
                self.unread += 1
                continue
            if self._file is not None:
                logger.info("%s begins", order.name)
                return order
            self._held.close()
        return None

    def send(self, event: Event) -> None:
        """Append a line to the job's file; the last one is safe on the disk."""
        if self._file is None:
            return  # a heartbeat: nobody hears it
        line = json.dumps(codec.encode(event), separators=(",", ":"), allow_nan=False)
        try:
            self._file.write(line.encode() + b"\n")
            self._file.flush()
            if event.kind in ENDS:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise Away(f"{self._file.name} cannot be written: {error.strerror}") from error

    def done(self) -> None:
        """Let the job's file go."""
        self._file = None
        self._held.close()

    def word(self, runner: str) -> Word:
        """Nobody says anything."""
        return Word()

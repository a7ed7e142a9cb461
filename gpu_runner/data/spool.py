"""A folder that carries jobs to a host which reaches no site, and events back.

`spool.json` says for which device it is. `jobs/NAME.json` is a job, and `events/NAME.jsonl` what
came of it: one event a line, the last one FINISHED or LOST once it is over. `aside/` holds files
that could not be read.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import ENDS, Event
from gpu_runner.data.order import JobName, Order

FORMAT = 1  # of the folder; raised where an older reader would go wrong
MANIFEST = "spool.json"
_FOLDERS = ("jobs", "events")
_LARGEST_BYTES = 256 << 20  # chosen: a job brings a task's texts, a result is smaller


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a spool is for. name: the mark that its jobs have on the site."""

    format: int = FORMAT
    name: str
    device: str
    device_kind: str

    def __post_init__(self) -> None:
        """Refuse what another version of kbench has written."""
        if self.format != FORMAT:
            raise DataError("format", f"must be {FORMAT}, not {self.format}")


class SpoolFolder:
    """The files of a spool. What cannot be read is a `DataError` of that one file."""

    def __init__(self, folder: Path) -> None:
        """Use that folder; nothing is read or made yet."""
        self.folder = folder

    def manifest(self) -> Manifest | None:
        """What it is for; None where it is no spool. Raises `DataError` naming the field."""
        path = self.folder / MANIFEST
        return codec.decode(Manifest, _read(path), MANIFEST) if path.exists() else None

    def is_vacant(self) -> bool:
        """Whether a spool may be made here: nothing is, but the beginning of one."""
        found = self.folder.rglob("*") if self.folder.exists() else iter(())
        mine = [self.folder / name for name in (*_FOLDERS, Path(MANIFEST).stem + _PARTIAL)]
        return all(path in mine for path in found)

    def begin(self, manifest: Manifest) -> None:
        """Make it a spool."""
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        _write(self.folder / MANIFEST, codec.encode(manifest))

    def put(self, job: Order) -> None:
        """Add a job, whole or not at all."""
        _write(self.folder / "jobs" / f"{job.name}.json", codec.encode(job))

    def job_files(self) -> list[Path]:
        """Files of all jobs, the oldest first."""
        paths = (self.folder / "jobs").glob("*.json")
        return sorted(paths, key=lambda path: (path.lstat().st_mtime_ns, path.name))

    def job(self, path: Path) -> Order:
        """The job of a file; raises `DataError`."""
        job = codec.decode(Order, _read(path), path.name)
        if str(job.name) != path.stem:
            raise DataError(path.name, f"contains a different job, {job.name}")
        return job

    def events_file(self, name: JobName) -> Path:
        """Where the job's events stand, or will."""
        return self.folder / "events" / f"{name}.jsonl"

    def events(self, name: JobName) -> list[Event]:
        """What came of the job; empty until it is over. Raises `DataError` for a wrong line."""
        path = self.events_file(name)
        return ended(_content(path), path.name) if path.exists() else []

    @contextmanager
    def held(self, name: JobName) -> Iterator[IO[bytes] | None]:
        """The emptied file for the events of a job; None if it is over, or somebody is at it.

        What stands there and cannot be read is set aside. Raises `DataError` if the file cannot be
        opened.
        """
        with self._locked(name) as file:
            if file is None or self._is_over(name):
                yield None
                return
            file.truncate(0)
            yield file

    def set_aside(self, path: Path) -> str:
        """Move a file out of the way; where it is now, in words. Raises `DataError`."""
        aside = self._copied(path)
        path.unlink()
        return f"set aside as {aside}"

    def set_events_aside(self, name: JobName) -> str:
        """Empty a job's file of events, so that it can be done again; where they are, in words.

        Empty while somebody is at it. Raises `DataError`.
        """
        with self._locked(name) as file:
            if file is None or self._is_over(name):
                return ""
            file.truncate(0)
        return f"set aside as {self._aside(self.events_file(name))}; the job can be run again"

    def _is_over(self, name: JobName) -> bool:
        try:
            return bool(self.events(name))
        except DataError:
            self._copied(self.events_file(name))
            return False

    @contextmanager
    def _locked(self, name: JobName) -> Iterator[IO[bytes] | None]:
        path = self.events_file(name)
        try:
            file = path.open("a+b")
        except OSError as error:
            raise DataError(path.name, f"cannot be opened: {error.strerror}") from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            yield file

    def _copied(self, path: Path) -> Path:
        aside = self._aside(path)
        try:
            aside.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, aside)
        except OSError as error:
            raise DataError(path.name, f"cannot be set aside: {error.strerror}") from None
        return aside

    def _aside(self, path: Path) -> Path:
        return self.folder / "aside" / path.name


def ended(content: bytes, name: str) -> list[Event]:
    """The events of a job that is over; empty while it is not, or its last line is torn."""
    lines = content.splitlines()
    if not lines or not content.endswith(b"\n"):
        return []
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(codec.decode(Event, json.loads(line)))
        except (ValueError, RecursionError) as error:  # DataError is a ValueError
            raise DataError(f"{name}, line {number}", f"is not an event: {error}") from None
    return events if events[-1].kind in ENDS else []


_PARTIAL = ".partial"


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise DataError(path.name, f"is larger than {_LARGEST_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise DataError(path.name, f"cannot be read: {error.strerror}") from None


def _read(path: Path) -> object:
    try:
        return json.loads(_content(path))
    except DataError:
        raise
    except (ValueError, RecursionError):
        raise DataError(path.name, "is not JSON") from None


def _write(path: Path, document: object) -> None:
    partial = path.with_suffix(_PARTIAL)
    with partial.open("w") as file:
        json.dump(document, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)

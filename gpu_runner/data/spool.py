"""A folder that carries jobs to a host which reaches no site, and events back.

`spool.json` says for which device it is. `jobs/NAME.json` is a job, and `events/NAME.jsonl` what
came of it: one event a line, the last one FINISHED or LOST once it is over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind, JobKind, decode_event

FORMAT = 1
MANIFEST = "spool.json"
ENDS = (EventKind.FINISHED, EventKind.LOST)
_LARGEST_BYTES = 256 << 20


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


@dataclass(frozen=True, kw_only=True)
class SpooledJob:
    """One job: `request` is encoded, as a runner gets it through a queue."""

    kind: JobKind
    job_id: str
    attempt: int
    timeout_s: int
    request: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Of its files, without their endings."""
        return f"{self.kind}-{self.job_id}-{self.attempt}"


class SpoolFolder:
    """The files of a spool."""

    def __init__(self, folder: Path) -> None:
        """Use that folder; nothing is read or made yet."""
        self.folder = folder

    def manifest(self) -> Manifest | None:
        """What it is for; None where it is no spool. Raises `DataError` naming the field."""
        path = self.folder / MANIFEST
        return codec.decode(Manifest, _read(path), MANIFEST) if path.exists() else None

    def begin(self, manifest: Manifest) -> None:
        """Make it a spool."""
        for name in ("jobs", "events"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        _write(self.folder / MANIFEST, codec.encode(manifest))

    def put(self, job: SpooledJob) -> None:
        """Add a job, whole or not at all."""
        _write(self.folder / "jobs" / f"{job.name}.json", codec.encode(job))

    def jobs(self) -> Iterator[SpooledJob]:
        """All jobs, oldest first; raises `DataError` for one that cannot be read."""
        paths = (self.folder / "jobs").glob("*.json")
        for path in sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name)):
            job = codec.decode(SpooledJob, _read(path), path.name)
            if job.name != path.stem:
                raise DataError(path.name, f"holds the job {job.name}")
            yield job

    def events_file(self, job: SpooledJob) -> Path:
        """Where the job's events stand, or will."""
        return self.folder / "events" / f"{job.name}.jsonl"

    def events(self, job: SpooledJob) -> list[Event]:
        """What came of the job; empty until it is over. Raises `DataError` for a wrong line."""
        path = self.events_file(job)
        if not path.exists():
            return []
        if path.stat().st_size > _LARGEST_BYTES:
            raise DataError(path.name, f"is larger than {_LARGEST_BYTES >> 20} MiB")
        return ended(path.read_bytes(), path.name)


def ended(content: bytes, name: str) -> list[Event]:
    """The events of a job that is over; empty while it is not, or its last line is torn."""
    lines = content.splitlines()
    if not lines or not content.endswith(b"\n"):
        return []
    events = []
    for number, line in enumerate(lines, 1):
        try:
            events.append(decode_event(json.loads(line)))
        except ValueError as error:  # DataError is one
            raise DataError(f"{name}, line {number}", f"is no event: {error}") from None
    return events if events[-1].kind in ENDS else []


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        raise DataError(path.name, "is no JSON") from None


def _write(path: Path, document: Any) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("w") as file:
        json.dump(document, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)

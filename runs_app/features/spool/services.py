"""Hand waiting jobs out in a folder, take in what came of them, and take jobs back."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event
from gpu_runner.data.order import JobName
from gpu_runner.data.spool import Manifest, SpoolFolder
from runs_app.core.errors import EventError
from runs_app.core.messaging import orders
from runs_app.core.runners.events import Sender, record_events
from runs_app.core.work import lifecycle
from runs_app.models import JOBS, Device, RunnerJob, Status
from runs_app.models.runner_job import SPOOL

_LONGEST_REASON = 500  # characters


class SpoolError(ValueError):
    """The folder, or what is asked of it, is wrong; the text says which and why."""


@dataclass
class Imported:
    """What became of a spool's jobs.

    unfinished: jobs that are still handed out. refused: sentences, why the outcome of a job was
    not stored, or which file cannot be read and where it is now.
    """

    new: int = 0
    known: int = 0
    unfinished: int = 0
    refused: list[str] = field(default_factory=list)


def export_spool(*, folder: Path, device: Device, most: int, now: datetime) -> int:
    """Write up to `most` of the device's waiting jobs, people's first; returns how many.

    More can be added to a spool of the same device. A job that is written and then not handed out,
    as somebody died in between, is refused when it comes back. Raises `SpoolError`, `OSError`.
    """
    if device.imported_from:
        raise SpoolError(f"device {device.slug} shows results from another site, so it has no jobs")
    spool = SpoolFolder(folder)
    manifest = _manifest(spool)
    if manifest is None:
        if not spool.is_vacant():
            raise SpoolError(f"{folder} is neither empty nor a spool: choose an empty folder")
        name = secrets.token_hex(8)
        manifest = Manifest(name=name, device=device.slug, device_kind=device.kind)
        spool.begin(manifest)
    if manifest.device != device.slug:
        raise SpoolError(f"{folder} is a spool of {manifest.device}, not of {device.slug}")
    waiting = lifecycle.find(Q(status=Status.QUEUED, device=device))
    waiting.sort(key=lambda job: (job.queue_place, job.queued_at))
    return sum(_hand_out(job, spool, manifest.name, now) for job in waiting[:most])


@transaction.atomic
def _hand_out(seen: RunnerJob, spool: SpoolFolder, name: str, now: datetime) -> bool:
    job = lifecycle.lock_again(seen)
    if job is None:
        return False
    spool.put(orders.order_of(seen))
    lifecycle.give_to_spool(job, spool=name, now=now)
    return True


def import_spool(*, folder: Path, now: datetime) -> Imported:
    """Record what came of the spool's jobs; the same spool twice changes nothing.

    Each job is recorded whole and by itself, so that this can end anywhere. Only jobs count that
    were handed out in this spool and not taken back. A file that cannot be read is set aside, and
    named; if it is a job's, the job is queued again. Raises `SpoolError`.
    """
    spool = SpoolFolder(folder)
    manifest = _begun(spool)
    done = Imported()
    for path in spool.job_files():
        try:
            _import(path, spool, manifest, done, now)
        except (DataError, EventError, SpoolError) as error:
            done.refused.append(str(error))
    done.unfinished = len(_handed_out(manifest.name))
    return done


def _import(
    path: Path, spool: SpoolFolder, manifest: Manifest, done: Imported, now: datetime
) -> None:
    try:
        name = JobName.read(path.stem)
    except DataError as error:
        raise SpoolError(f"{error}; {spool.set_aside(path)}") from None
    if _is_recorded(name):
        done.known += 1
        return
    try:
        events = spool.events(name)
    except DataError as error:
        aside = spool.set_events_aside(name)
        raise SpoolError(f"{error}; {aside}" if aside else str(error)) from None
    if not events:
        _see_that_it_can_be_done(path, name, spool, manifest, now)
        return
    try:
        _check(name, events, manifest)
        record_events(events=[(Sender(spool=manifest.name), each) for each in events], now=now)
    except (DataError, EventError, SpoolError) as error:
        more = _queue_again(name, manifest, str(error), now)
        raise SpoolError(f"{name}: {error}{more}") from None
    done.new += 1


def _queue_again(name: JobName, manifest: Manifest, why: str, now: datetime) -> str:
    """Begin the next attempt of a job whose outcome was refused, if there is one; says so."""
    seen = _row(name)
    if seen is None or seen.attempt != name.attempt or not _is_out(seen, manifest):
        return ""
    reason = f"the results from its spool were refused: {why}"[:_LONGEST_REASON]
    with transaction.atomic():
        job = lifecycle.lock_again(seen)
        if job is None or job.runner_boot_id != seen.runner_boot_id:
            return ""
        lifecycle.retry_or_give_up(job, reason=reason, now=now)
    return "; that was the last attempt" if job.is_over else "; the job is back in the queue"


def _see_that_it_can_be_done(
    path: Path, name: JobName, spool: SpoolFolder, manifest: Manifest, now: datetime
) -> None:
    """Take a job back whose file no host can read; raises `SpoolError` then."""
    try:
        spool.job(path)
    except DataError as error:
        row = _row(name)
        again = row is not None and _is_out(row, manifest) and _take_back(row, now)
        more = "; the job is back in the queue" if again else ""
        raise SpoolError(f"{error}; {spool.set_aside(path)}{more}") from None


def _is_recorded(name: JobName) -> bool:
    """Whether this attempt is over on the site."""
    row = _row(name)
    return row is not None and (row.is_over or row.attempt > name.attempt)


def _check(name: JobName, events: list[Event], manifest: Manifest) -> None:
    row = _row(name)
    if row is None:
        raise SpoolError("this site has no such job")
    if not _is_out(row, manifest):
        raise SpoolError("it is not one of this spool's jobs")
    for event in events:
        if (event.job, event.job_id, event.attempt) != (name.kind, name.job_id, name.attempt):
            raise SpoolError("its file contains events from another job")


def _is_out(row: RunnerJob, manifest: Manifest) -> bool:
    return row.runner_boot_id == SPOOL + manifest.name


def _row(name: JobName) -> RunnerJob | None:
    try:
        return JOBS[name.kind]._default_manager.filter(pk=name.job_id).first()
    except (KeyError, ValidationError):  # no such kind is there, or no such id can be
        return None


def take_back(*, folder: Path, now: datetime) -> int:
    """Queue all jobs again of which this spool has brought nothing; returns how many."""
    return sum(_take_back(job, now) for job in _handed_out(_begun(SpoolFolder(folder)).name))


@transaction.atomic
def _take_back(seen: RunnerJob, now: datetime) -> bool:
    job = lifecycle.lock_again(seen)
    if job is None or job.runner_boot_id != seen.runner_boot_id:
        return False
    lifecycle.take_from_spool(job, now=now)
    return True


def _handed_out(name: str) -> list[RunnerJob]:
    return lifecycle.find(Q(status=Status.RUNNING, runner_boot_id=SPOOL + name))


def _begun(spool: SpoolFolder) -> Manifest:
    if (manifest := _manifest(spool)) is None:
        raise SpoolError(f"{spool.folder} has no spool.json, so it is not a spool")
    return manifest


def _manifest(spool: SpoolFolder) -> Manifest | None:
    try:
        return spool.manifest()
    except DataError as error:
        raise SpoolError(f"{spool.folder}: {error}") from None

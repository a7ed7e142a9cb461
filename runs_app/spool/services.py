"""Hand waiting jobs out in a folder, take in what came of them, and take jobs back."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event
from gpu_runner.data.queue import Urgency
from gpu_runner.data.spool import Manifest, SpooledJob, SpoolFolder
from runs_app.errors import EventError
from runs_app.messaging import queues
from runs_app.models import Device, RunnerJob, Status
from runs_app.runners.events import record_events
from runs_app.work import lifecycle

_URGENCIES = list(Urgency)


class SpoolError(ValueError):
    """The folder, or what is asked of it, is wrong; the text says which and why."""


@dataclass
class Imported:
    """What became of a spool's jobs.

    unfinished: jobs without an end. refused: why the outcome of a job was not stored.
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
        raise SpoolError(f"device {device.slug} holds results of another site")
    spool = SpoolFolder(folder)
    manifest = _manifest(spool)
    if manifest is None:
        if folder.exists() and any(folder.iterdir()):
            raise SpoolError(f"{folder} is not empty, and no spool")
        name = secrets.token_hex(8)
        manifest = Manifest(name=name, device=device.slug, device_kind=device.kind)
        spool.begin(manifest)
    if manifest.device != device.slug:
        raise SpoolError(f"{folder} is a spool of {manifest.device}, not of {device.slug}")
    waiting = lifecycle.find(Q(status=Status.QUEUED, device=device))
    waiting.sort(key=lambda job: (_URGENCIES.index(queues.urgency(job)), job.queued_at))
    return sum(_hand_out(job, spool, manifest.name, now) for job in waiting[:most])


@transaction.atomic
def _hand_out(seen: RunnerJob, spool: SpoolFolder, name: str, now: datetime) -> bool:
    job = lifecycle.lock_in(seen, Status.QUEUED)
    if job is None or job.attempt != seen.attempt:
        return False
    _, request = queues.order(seen)
    spool.put(
        SpooledJob(
            kind=job.KIND,
            job_id=str(job.pk),
            attempt=job.attempt,
            timeout_s=settings.JOB_TIMEOUT_S,
            request=codec.encode(request),
        )
    )
    lifecycle.hand_out(job, spool=name, now=now)
    return True


def import_spool(*, folder: Path, now: datetime) -> Imported:
    """Record what came of the spool's jobs; the same spool twice changes nothing.

    Each job is recorded whole and by itself, so that this can end anywhere. Only jobs count that
    were handed out in this spool and not taken back. Raises `SpoolError`.
    """
    spool = SpoolFolder(folder)
    manifest = _manifest(spool)
    if manifest is None:
        raise SpoolError(f"{folder} holds no spool.json: it is no spool")
    done = Imported()
    try:
        for job in spool.jobs():
            _import(job, spool, manifest, done, now)
    except DataError as error:
        raise SpoolError(f"{folder}: {error}") from None
    return done


def _import(
    job: SpooledJob, spool: SpoolFolder, manifest: Manifest, done: Imported, now: datetime
) -> None:
    try:
        events = spool.events(job)
        if not events:
            done.unfinished += 1
            return
        if _is_recorded(job):
            done.known += 1
            return
        _check(job, events, manifest)
        record_events(events=events, now=now)
    except (DataError, EventError, SpoolError) as error:
        done.refused.append(f"{job.name}: {error}")
    else:
        done.new += 1


def _is_recorded(job: SpooledJob) -> bool:
    """Whether this attempt is over on the site."""
    row = _row(job)
    return row is not None and (row.is_over or row.attempt > job.attempt)


def _check(job: SpooledJob, events: list[Event], manifest: Manifest) -> None:
    row = _row(job)
    if row is None:
        raise SpoolError("this site has no such job")
    if row.runner_boot_id != lifecycle.SPOOL + manifest.name:
        raise SpoolError("it was not handed out in this spool")
    for event in events:
        if (event.job, event.job_id, event.attempt) != (job.kind, job.job_id, job.attempt):
            raise SpoolError("its file holds events of another job")


def _row(job: SpooledJob) -> RunnerJob | None:
    try:
        return lifecycle.MODELS[job.kind]._default_manager.filter(pk=job.job_id).first()
    except ValidationError:  # no such id can be
        return None


def take_back(*, folder: Path, now: datetime) -> int:
    """Queue all jobs again of which this spool has brought nothing; returns how many."""
    manifest = _manifest(SpoolFolder(folder))
    if manifest is None:
        raise SpoolError(f"{folder} holds no spool.json: it is no spool")
    return sum(_take_back(job, now) for job in _handed_out(manifest.name))


@transaction.atomic
def _take_back(seen: RunnerJob, now: datetime) -> bool:
    job = lifecycle.lock_in(seen, Status.RUNNING)
    if job is None or job.runner_boot_id != seen.runner_boot_id:
        return False
    lifecycle.take_back(job, now=now)
    return True


def _handed_out(name: str) -> Iterator[RunnerJob]:
    yield from lifecycle.find(Q(status=Status.RUNNING, runner_boot_id=lifecycle.SPOOL + name))


def _manifest(spool: SpoolFolder) -> Manifest | None:
    try:
        return spool.manifest()
    except DataError as error:
        raise SpoolError(f"{spool.folder}: {error}") from None

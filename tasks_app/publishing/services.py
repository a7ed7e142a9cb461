"""Publish versions of tasks, if wrong kernels fail them and no filter flags them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.dispatch import Signal

from gpu_runner.data import codec
from gpu_runner.data.task import Task as TaskData
from tasks_app.errors import CurationError
from tasks_app.formats.loader import Report
from tasks_app.models import AuditEntry, Override, Soundness, Task, TaskVersion
from tasks_app.publishing.audit_log import add_entry

version_published = Signal()
"""A version has become public for the first time. Receivers run in the same transaction.

Arguments: `version`, `now`.
"""


_LEAST = timedelta(microseconds=1)
"""Between two moments of which one comes after the other."""


@dataclass(frozen=True)
class Publication:
    """A stored version; `is_new` if it did not exist before.

    made_public: whether it became its task's public version just now, be it new or not.
    reports: the devices of soundness reports that were stored with it, in place of earlier ones or
    of none.
    refusal: why it is not public: it waits in review. Empty if it is its task's current version.
    """

    version: TaskVersion
    is_new: bool
    refusal: str = ""
    made_public: bool = False
    reports: tuple[str, ...] = ()


@transaction.atomic
def publish(*, data: TaskData, now: datetime) -> Publication:
    """Make `data` the current version of its task, without asking whether it is sound.

    An unchanged task gets no new version. `admit` is the one that asks.
    """
    task, version, is_new = store_version(data, now)
    task.published_by = None
    make_current(task, version, now)
    return Publication(version, is_new)


@transaction.atomic
def admit(
    *,
    data: TaskData,
    now: datetime,
    reports: Sequence[Report] = (),
    override: str = "",
    origin: str = "",
) -> Publication:
    """Publish a task if soundness reports pass, or `override` says why it may go without.

    `reports` are those of its digest; others of the same kinds of devices are replaced. Otherwise
    it is stored in review, where admins can evaluate kernels on it; a version that was public
    before stays so. What is public without a report, or in spite of what a runner of this site has
    found since, is left alone; where one of `reports` fails it goes back to review. A version that
    was public before does not come back where an admin has made another one public since.
    """
    task, version, is_new = store_version(data, now, origin=origin)
    stored = tuple(
        report.device or report.kind.value
        for report in reports
        if record_report(version, report, now)
    )
    if override.strip() and version.unproven:
        override_gate(version=version, user=None, reason=override.strip(), now=now)
    refusal = version.unproven
    if _is_left_alone(task, version, refusal):
        return Publication(version, is_new, reports=stored)
    if not refusal:
        before = (task.state, task.current_version_id)
        if task.state == Task.State.REVIEW:
            task.state = Task.State.PUBLISHED
        changed = before != (task.state, version.pk)
        made_public = changed and task.state == Task.State.PUBLISHED
        if made_public:
            task.published_by = None
        make_current(task, version, now)
        return Publication(version, is_new, made_public=made_public, reports=stored)
    public = task.state == Task.State.PUBLISHED and task.current_version_id is not None
    if task.current_version_id == version.pk or not public:
        if task.state == Task.State.PUBLISHED:
            task.state = Task.State.REVIEW
        make_current(task, version, now)
    return Publication(version, is_new, refusal, reports=stored)


def _is_left_alone(task: Task, version: TaskVersion, refusal: str) -> bool:
    """Whether loading changes nothing: it is public and nothing new is said, or was replaced.

    The built-in tasks are loaded at each start, which must not undo what an admin has made public,
    nor decide about what a check of a public task has found: a person does, who is told of it.
    """
    is_current = task.current_version_id == version.pk
    if refusal:
        against = version.reports.filter(made_here=False, passed=False).exists()
        return is_current and task.state == Task.State.PUBLISHED and not against
    if is_current or task.state == Task.State.REVIEW:
        return False
    return version.published_at is not None and task.published_by_id is not None


def admit_all(
    *,
    tasks: list[TaskData],
    reports: Sequence[Report],
    now: datetime,
    override: str = "",
    origins: Mapping[str, str] | None = None,
) -> list[Publication]:
    """Admit several tasks, and log what changed; each takes its own of `reports`.

    origins: where each was read, by its name.
    """
    by_digest: dict[str, list[Report]] = {}
    for report in reports:
        by_digest.setdefault(report.digest, []).append(report)
    known = origins or {}
    return [
        _load(data, by_digest.get(data.digest(), []), override, now, known.get(data.name, ""))
        for data in tasks
    ]


@transaction.atomic
def _load(
    data: TaskData, reports: Sequence[Report], override: str, now: datetime, origin: str
) -> Publication:
    known = Override.objects.filter(version__digest=data.digest()).count()
    public = Task.objects.filter(slug=data.name, state=Task.State.PUBLISHED).exists()
    publication = admit(data=data, reports=reports, override=override, now=now, origin=origin)
    version = publication.version
    taken_back = public and version.task.state != Task.State.PUBLISHED
    if publication.is_new or taken_back or publication.reports:
        details = {"reports": list(publication.reports)} if publication.reports else {}
        reason = publication.refusal
        add_entry(AuditEntry.Kind.LOADED, now=now, version=version, reason=reason, details=details)
    if version.overrides.count() > known:
        add_entry(AuditEntry.Kind.OVERRIDDEN, now=now, version=version, reason=override.strip())
    if publication.made_public:
        add_entry(AuditEntry.Kind.PUBLISHED, now=now, version=version)
    return publication


@transaction.atomic
def override_gate(*, version: TaskVersion, user: User | None, reason: str, now: datetime) -> None:
    """Note that a version is published that nobody has proven sound, and why; its page shows it.

    It is stored behind all reports that there are, also those of a clock that is ahead. Without a
    user a command says so. Raises `ValueError` without a reason.
    """
    if not reason.strip():
        raise ValueError("an override needs a reason")
    _lock(version)
    newest = max((report.created_at for report in version.reports.all()), default=None)
    moment = now if newest is None else max(now, newest + _LEAST)
    Override.objects.create(version=version, reason=reason, decided_by=user, created_at=moment)


def must_be_seen(version: TaskVersion, reports: str | None) -> None:
    """Raise `CurationError` if the version's `evidence` is not this one, which was looked at.

    Behind the version's lock, so that none is stored until it has been decided. None is not asked.
    """
    locked = _lock(version)
    if reports not in (None, locked.evidence):
        reason = "a soundness report has arrived since you opened this page: read it, then decide"
        raise CurationError("reports", reason)


def _lock(version: TaskVersion) -> TaskVersion:
    """The version, with no report of it stored by others until the transaction ends."""
    return TaskVersion.objects.select_for_update(no_key=True).only("pk").get(pk=version.pk)


def store_version(
    data: TaskData, now: datetime, *, state: str = Task.State.PUBLISHED, origin: str = ""
) -> tuple[Task, TaskVersion, bool]:
    """The task, locked, and its version that holds `data`; True if the version is new.

    A task that did not exist, or was only proposed, goes on in `state`. Nothing becomes public by
    this alone: the caller saves the task.
    """
    Task.objects.get_or_create(
        slug=data.name,
        defaults={
            "title": data.title,
            "scenario": data.scenario,
            "state": state,
            "created_at": now,
        },
    )
    task = Task.objects.select_for_update(no_key=True).get(slug=data.name)
    if task.state == Task.State.DRAFT:
        task.state = state
    digest = data.digest()
    version = TaskVersion.objects.filter(digest=digest).first()
    if version is not None:
        return task, version, False
    version = TaskVersion.objects.create(
        task=task,
        number=task.versions.count() + 1,
        digest=digest,
        document=codec.encode(data),
        abi=data.abi.value,
        dtype=data.dtype,
        origin=origin,
        created_at=now,
    )
    return task, version, True


def make_current(task: Task, version: TaskVersion, now: datetime) -> None:
    """Store the task with this as its current version, and since when it is public if it is.

    What was public keeps its title until another version is: results on it stand under the title.
    """
    was_public = task.versions.filter(published_at__isnull=False).exists()
    if task.state == Task.State.PUBLISHED or not was_public:
        task.title, task.scenario = version.document["title"], version.data.scenario
    task.current_version = version
    columns = ["title", "scenario", "state", "current_version", "published_by", "why_retired"]
    task.save(update_fields=columns)
    if task.state == Task.State.PUBLISHED and version.published_at is None:
        version.published_at = now
        TaskVersion.objects.filter(pk=version.pk).update(published_at=now)
        version_published.send(sender=TaskVersion, version=version, now=now)


@transaction.atomic
def record_report(
    version: TaskVersion, report: Report, now: datetime, *, made_here: bool = False
) -> bool:
    """Store a soundness report of a version in place of an earlier one of this kind of device.

    made_here: a runner of this site made it. What one of them found against the version on one
    device is not answered by a pass on another of its kind. False if nothing was stored.
    """
    # Who publishes it meanwhile has not seen this report, and answers for none that comes after.
    _lock(version)
    answer = version.overrides.first()
    moment = now if answer is None else max(now, answer.created_at + _LEAST)
    fields = {
        "passed": report.passed,
        "mutants": report.mutants,
        "survivors": list(report.survivors),
        "filters": report.filters,
        "flagged": list(report.flagged),
        "device": report.device,
        "made_here": made_here,
        "document": dict(report.document),
        "created_at": moment,
    }
    known = version.reports.filter(kind=report.kind).first()
    if known is not None and known.made_here and not known.passed:
        elsewhere = made_here and known.device != report.device
        if elsewhere and report.passed:
            return False
    if known is not None and known.document == fields["document"]:
        return False
    Soundness.objects.update_or_create(version=version, kind=report.kind, defaults=fields)
    return True

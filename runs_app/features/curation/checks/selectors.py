"""What runners found out about a draft: its checks, the report that came of them, its dry runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch, Q, QuerySet

from gpu_runner.data.codec import DataError
from gpu_runner.data.queue import OF_PEOPLE
from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Language
from runs_app.core.checks.selectors import check_reason, check_stage, may_cancel
from runs_app.core.queue.checks import check_words
from runs_app.core.queue.runners import runner_list
from runs_app.core.queue.selectors import waiting_reason, why_blocked
from runs_app.core.work.access import public_reason, visible_evaluations
from runs_app.models import UNDER_WAY, Evaluation, Status, Submission, TaskCheck
from runs_app.submitting.shipped import shipped_solution
from tasks_app import selectors
from tasks_app.models import Draft, Soundness, TaskVersion
from tasks_app.people import Viewer

_CHECKS = 6
_DRY_RUNS = 60


@dataclass(frozen=True, kw_only=True)
class CheckView:
    """A check as its draft's page shows it.

    `stage` is what its runner is at. `note` says why it waits, was tried again or has no report;
    `elapsed_s` counts from the start, or from the request while it waits.
    """

    check: TaskCheck
    words: str  # what it does or waits for, of one that is under way
    stage: str
    note: str
    elapsed_s: float
    is_present: bool
    may_cancel: bool


@dataclass(frozen=True, kw_only=True)
class DryRunView:
    """One try of a kernel, which comes with the version unless it was pushed to the draft.

    note: as in `CheckView`.
    """

    kernel: ShippedKernel | None
    evaluation: Evaluation
    note: str
    elapsed_s: float | None

    @property
    def name(self) -> str:
        """The kernel's path in the task, or else what it is."""
        if self.kernel is not None:
            return self.kernel.path
        return f"pushed kernel, {Language(self.evaluation.submission.language).label}"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that was found out about a draft.

    The `reports`, one for each kind of device, what decides first, are those of the present files;
    where there are none, `is_stale`, and they are those of earlier files. Dry runs are those of
    the present files.
    """

    checks: Sequence[CheckView]
    reports: Sequence[Soundness]
    is_stale: bool
    dry_runs: Sequence[DryRunView]
    kernels: int | None  # that come with the version; None where there is none of these files

    @property
    def checks_under_way(self) -> list[CheckView]:
        """The checks that wait or run."""
        return [view for view in self.checks if not view.check.is_over]

    @property
    def dry_runs_under_way(self) -> list[DryRunView]:
        """The tries that wait or run."""
        return [view for view in self.dry_runs if not view.evaluation.is_over]

    @property
    def under_way(self) -> bool:
        """Whether something may change without anybody's doing."""
        return bool(self.checks_under_way or self.dry_runs_under_way)


def draft_findings(draft: Draft, user: Viewer, now: datetime) -> Findings:
    """What was found out about a draft that is open to `user`."""
    versions = selectors.versions_made_in(draft)
    reports = _reports(draft, versions)
    return Findings(
        checks=_checks(draft, versions, user, now),
        reports=reports,
        is_stale=any(report.version_id != draft.version_id for report in reports),
        dry_runs=_dry_run_views(draft.version, user, now) if draft.version else [],
        kernels=len(draft.version.data.kernels) if draft.version else None,
    )


def shipped_kernels(version: TaskVersion) -> dict[str, ShippedKernel]:
    """The kernels that come with a version, by the digests of their solutions.

    Left out is what no compiler should see, such as an empty file.
    """
    found: dict[str, ShippedKernel] = {}
    for kernel in version.data.kernels:
        with suppress(DataError):
            found.setdefault(shipped_solution(version, kernel).digest(), kernel)
    return found


def dry_runs(version: TaskVersion, user: Viewer) -> QuerySet[Evaluation]:
    """The tries of a version's kernels that `user` may see: admins all, others their own."""
    return visible_evaluations(user).filter(
        task_version=version, submission__origin=Submission.Origin.DRY_RUN
    )


def _reports(draft: Draft, versions: Iterable[int]) -> list[Soundness]:
    """Those of the present files, or of the files that were checked last."""
    rows = Soundness.objects.filter(version__in=versions)
    newest = rows.filter(version=draft.version_id).first() or rows.order_by("-created_at").first()
    if newest is None:
        return []
    return list(rows.filter(version=newest.version_id).select_related("version__task"))


def _checks(draft: Draft, versions: Iterable[int], user: Viewer, now: datetime) -> list[CheckView]:
    rows = TaskCheck.objects.filter(version__in=versions).select_related(
        "device", "runner", "asked_by"
    )
    newest = list(rows.order_by("-created_at", "-pk")[:_CHECKS])
    # A document each, not one for each check; whether names may be shown depends on the drafts.
    drafts = Prefetch("drafts", queryset=Draft.objects.defer("files"))
    wanted = {check.version_id for check in newest}
    documents = TaskVersion.objects.select_related("task").prefetch_related(drafts).in_bulk(wanted)
    for check in newest:
        check.version = documents[check.version_id]
    runners = runner_list(now)
    return [
        CheckView(
            check=check,
            words="" if check.is_over else check_words(check, runners),
            stage=check_stage(check, user),
            note=_check_note(check, user, now),
            elapsed_s=_elapsed_s(check, now),
            is_present=check.version_id == draft.version_id,
            may_cancel=may_cancel(check, user),
        )
        for check in newest
    ]


def _check_note(check: TaskCheck, user: Viewer, now: datetime) -> str:
    """Why it has no report, or why it waits."""
    if check.status != Status.QUEUED:
        return check_reason(check, user)
    runners = runner_list(now, check.device_id)
    before = _before(check)
    place = "next in the queue" if before == 0 else f"{before} ahead of it in the queue"
    if blocked := why_blocked(check.device, runners):
        words = f"{place}, but {blocked}"
    elif all(status.runner.current for status in runners if status.takes_work):
        words = f"{place}; the device's runners are busy with other jobs"
    else:
        words = place if before else f"{place}; a runner will take it within seconds"
    again = check_reason(check, user)
    return f"tried again: {again}; {words}" if again else words


def _before(check: TaskCheck) -> int:
    """How many jobs that people wait for are in the device's queue before a check."""
    earlier = Q(device=check.device_id, status=Status.QUEUED, queued_at__lt=check.queued_at)
    kernels = Evaluation.objects.filter(earlier, Evaluation.waits_as(*OF_PEOPLE)).count()
    return kernels + TaskCheck.objects.filter(earlier).count()


def _elapsed_s(work: TaskCheck | Evaluation, now: datetime) -> float:
    end = work.finished_at or now
    return max((end - (work.started_at or work.created_at)).total_seconds(), 0.0)


def _dry_run_views(version: TaskVersion, user: Viewer, now: datetime) -> list[DryRunView]:
    shipped = shipped_kernels(version)
    rows = dry_runs(version, user).defer(
        "task_version__document", "submission__source", "submission__files"
    )
    newest = list(rows.order_by("-created_at", "-pk")[:_DRY_RUNS])
    waiting: dict[str, int] = {}
    notes = {}
    for row in sorted(newest, key=lambda each: each.queued_at):
        row.task_version = version  # one document for all
        notes[row.pk] = _dry_run_note(row, waiting, user, now)
    return [
        DryRunView(
            kernel=shipped.get(row.submission.digest),
            evaluation=row,
            note=notes[row.pk],
            elapsed_s=None if row.status == Status.CANCELLED else _elapsed_s(row, now),
        )
        for row in newest
    ]


def _dry_run_note(row: Evaluation, waiting: dict[str, int], user: Viewer, now: datetime) -> str:
    """Why it waits, or the reason of its verdict; `waiting` counts those that wait before it.

    The queue is asked for the first on each device alone, however many kernels wait there.
    """
    if row.status not in UNDER_WAY:
        return "" if row.verdict == "CORRECT" else public_reason(row, user)
    if row.status != Status.QUEUED:
        return ""
    before = waiting.get(row.device_id, 0)
    waiting[row.device_id] = before + 1
    if before == 0:
        return waiting_reason(row, now)
    return f"waiting behind {before} of these"

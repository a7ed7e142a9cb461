"""What happens, and who is told of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.dispatch import receiver
from django.utils import timezone

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Evaluation, NoticeKind, Quarantine, Run, Status, Submission, Watch
from runs_app.notices.services import tell
from runs_app.work.signals import evaluation_ended
from tasks_app.models import TaskVersion
from tasks_app.publishing.signals import version_published

_ENTERED = (
    Submission.Origin.PERSON,
    Submission.Origin.API,
    Submission.Origin.ENTERED,
    Submission.Origin.DRY_RUN,
)


@receiver(evaluation_ended)
def _verdict(sender: Any, evaluation: Evaluation, **_: Any) -> None:
    """Tell an author of the verdict of a ranked submission, and of a cancellation by an admin."""
    submission = evaluation.submission
    cancelled = evaluation.status == Status.CANCELLED and "admin" in evaluation.reason
    if evaluation.background or submission.origin not in _ENTERED:
        return
    if not cancelled and (evaluation.mode != Mode.RANKED or evaluation.status != Status.FINISHED):
        return
    where = f"{evaluation.task_version.task.slug} on {evaluation.device_id}"
    text = f"{where}: {_words(evaluation)}"
    moment = evaluation.finished_at or timezone.now()
    author = [submission.author]
    tell(author, NoticeKind.VERDICT, text, submission.get_absolute_url(), now=moment)


def _words(evaluation: Evaluation) -> str:
    if evaluation.status == Status.CANCELLED:
        return "cancelled by an admin; its page says why"
    if evaluation.verdict != Verdict.CORRECT:
        return evaluation.verdict.replace("_", " ").lower()
    speedup = evaluation.speedup_best
    words = f"correct, {speedup:.3g} times the best baseline" if speedup else "correct"
    if evaluation.quarantine == Quarantine.OPEN:
        return f"{words}; in quarantine, on no board until a person decides"
    return words


def place_changed(before: Evaluation | None, after: Evaluation | None, *, now: datetime) -> None:
    """Tell whose first place was taken, and who watches, if another leads a board now.

    Leaders whose intervals overlap tie, and nobody has lost a place.
    """
    if after is None or (before is not None and before.submission_id == after.submission_id):
        return
    if before is not None and not _is_clear(before, after):
        return
    task, device = after.task_version.task, after.device
    leads, url = after.submission.agent.name, after.submission.get_absolute_url()
    where = f"{task.slug} on {device.name}"
    if after.direction != "forward":
        where = f"{where} ({after.direction})"
    loser = before.submission.author if before is not None else None
    winner = after.submission.author
    if loser is not None and loser.pk != winner.pk:
        text = f"{where}: {leads} has taken the first place from you"
        tell([loser], NoticeKind.PLACE, text, url, now=now)
    same = Q(task=task, device=None) | Q(task=task, device=device) | Q(task=None, device=device)
    known = {winner.pk, loser.pk if loser else winner.pk}
    watchers = User.objects.filter(watches__in=Watch.objects.filter(same, run=None))
    told = watchers.exclude(pk__in=known).distinct()
    tell(told, NoticeKind.WATCHED, f"{where}: {leads} leads now", url, now=now)


def _is_clear(before: Evaluation, after: Evaluation) -> bool:
    """Whether the new leader's interval lies below the old one's."""
    if before.latency_ns is None or after.latency_ns is None:
        return False
    most = after.latency_ns * (1 + (after.latency_spread or 0.0))
    return most < before.latency_ns * (1 - (before.latency_spread or 0.0))


def run_halted(run: Run, what: str, *, now: datetime) -> None:
    """Tell the owner of a run that it ended or was paused, and who watches it."""
    name = run.name or f"{run.strategy} on {run.task_version.task.slug}"
    text = f"Run {name}: {what}"
    url = run.get_absolute_url()
    tell([run.user], NoticeKind.RUN, text, url, now=now)
    watchers = User.objects.filter(watches__run=run).exclude(pk=run.user_id)
    if run.private:
        watchers = watchers.filter(is_staff=True)
    tell(watchers, NoticeKind.WATCHED, text, url, now=now)


@receiver(version_published)
def _published(sender: Any, version: TaskVersion, now: datetime, **_: Any) -> None:
    """Tell who watches a task that another version of it is public."""
    watchers = User.objects.filter(watches__task=version.task).distinct()
    text = f"{version.task.slug}: version {version.number} is public now"
    tell(watchers, NoticeKind.WATCHED, text, version.task.get_absolute_url(), now=now)

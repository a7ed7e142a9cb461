"""What happens and who is told of it, the count of unread notices, and the button that watches."""

from __future__ import annotations

import math
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.template.context import Context
from django.urls import reverse
from django.utils import timezone

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.hooks import Filling, Slot, evaluation_ended, fills, place_changed, tick
from runs_app.core.integrity.eligibility import eligibility
from runs_app.core.work.result_state import baseline_words, is_sure, result_state
from runs_app.features.notices import delivery
from runs_app.features.notices.models import (
    Delivery,
    Notice,
    NoticeKind,
    NoticeSettings,
    Watch,
    Webhook,
)
from runs_app.features.notices.services import tell, watch_key
from runs_app.models import (
    Audited,
    Device,
    Evaluation,
    Quarantine,
    QuarantineDecision,
    Run,
    Status,
    Submission,
)
from runs_app.optimiser.signals import run_halted
from tasks_app.models import Task, TaskVersion
from tasks_app.numbers import times
from tasks_app.people import account_closing
from tasks_app.publishing.services import version_published
from tasks_app.selectors import find_task

_MOST = 100
_ENTERED = (
    Submission.Origin.PERSON,
    Submission.Origin.API,
    Submission.Origin.ENTERED,
    Submission.Origin.DRY_RUN,
)


@receiver(evaluation_ended)
def _verdict(sender: object, evaluation: Evaluation, **_: object) -> None:
    """Tell an author of the verdict of a ranked submission, and of a cancellation by an admin."""
    submission = evaluation.submission
    cancelled = evaluation.status == Status.CANCELLED and "admin" in evaluation.reason
    if not evaluation.urgency.is_of_people or submission.origin not in _ENTERED:
        return
    if not cancelled and (evaluation.mode != Mode.RANKED or evaluation.status != Status.FINISHED):
        return
    where = f"{evaluation.task_version.task.slug} on {evaluation.device}"
    text = f"{where}: {_words(evaluation)}"
    moment = evaluation.finished_at or timezone.now()
    author = [submission.author]
    tell(author, NoticeKind.VERDICT, text, submission.get_absolute_url(), now=moment)


def _words(evaluation: Evaluation) -> str:
    if evaluation.status == Status.CANCELLED:
        return "canceled by an admin; its page says why"
    if evaluation.verdict != Verdict.CORRECT:
        return evaluation.verdict.replace("_", " ").lower()
    rated = evaluation.rated
    words = f"correct, {times(rated)} the speed of {_over(evaluation)}" if rated else "correct"
    if evaluation.quarantine == Quarantine.OPEN:
        return f"{words}; in quarantine, and off boards until a person decides"
    return words


def _over(evaluation: Evaluation) -> str:
    """What the figure compares with, and that it may still change: the notice won't."""
    if not is_sure(evaluation):
        return f"{baseline_words(evaluation)}, provisionally"
    audited = evaluation.audited == Audited.PASSED
    return f"{baseline_words(evaluation)}{'' if audited else ', before any audit'}"


@receiver(post_save, sender=QuarantineDecision)
def _decision(sender: object, instance: QuarantineDecision, **_: object) -> None:
    """Tell the authors of quarantined results what a person decided."""
    rows = instance.case.evaluations.filter(submission__origin__in=_ENTERED)
    of_authors = {(row.submission_id, row.device_id): row for row in rows.order_by("created_at")}
    for row in of_authors.values():
        text = f"{_where(row)}: {instance.state} by an admin; its page says why"
        url = row.submission.get_absolute_url()
        tell([row.submission.author], NoticeKind.VERDICT, text, url, now=instance.created_at)


@receiver(place_changed)
def _place(
    sender: object, before: Evaluation | None, after: Evaluation | None, now: datetime, **_: object
) -> None:
    """Tell whose first place was taken, and who watches, if another leads a board now.

    Leaders whose intervals overlap tie, and nobody has lost a place. The author of a
    result that no longer counts is told even if nobody leads now.
    """
    refused = before is not None and eligibility(before).is_doubt
    if before is not None and refused:
        text = f"{_where(before)}: your first place no longer counts; the result's page says why"
        url = before.submission.get_absolute_url()
        tell([before.submission.author], NoticeKind.PLACE, text, url, now=now)
    if after is None or (before is not None and not refused and not _is_clear(before, after)):
        return
    task, device, where = after.task_version.task, after.device, _where(after)
    leads, url = after.submission.agent.name, after.submission.get_absolute_url()
    state = result_state(after)
    when = " provisionally" if state and not state.is_sure else ""
    loser = before.submission.author if before is not None else None
    winner = after.submission.author
    if loser is not None and loser.pk != winner.pk and not refused:
        text = f"{where}: {leads} took first place from you{when}"
        tell([loser], NoticeKind.PLACE, text, url, now=now)
    same = Q(task=task, device=None) | Q(task=task, device=device) | Q(task=None, device=device)
    known = {winner.pk, loser.pk if loser else winner.pk}
    watchers = User.objects.filter(watches__in=Watch.objects.filter(same, run=None))
    told = watchers.exclude(pk__in=known).distinct()
    tell(told, NoticeKind.WATCHED, f"{where}: {leads} leads{when or ' now'}", url, now=now)


def _where(evaluation: Evaluation) -> str:
    """The board in words: "softmax on NVIDIA H100 (backward)"."""
    where = f"{evaluation.task_version.task.slug} on {evaluation.device.name}"
    return where if evaluation.direction == "forward" else f"{where} ({evaluation.direction})"


def _is_clear(before: Evaluation, after: Evaluation) -> bool:
    """Whether the new leader's interval lies above the old one's, by what boards rank by."""
    if after.score is None or after.awaits_baselines:
        is_scored = before.score is not None and not before.awaits_baselines
        if is_scored or before.latency_ns is None or after.latency_ns is None:
            return False
        most = after.latency_ns * (1 + (after.spread("latency") or 0.0))
        return most < before.latency_ns * (1 - (before.spread("latency") or 0.0))
    least = after.score * math.exp(-(after.score_spread or 0.0))
    if before.score is None or before.awaits_baselines:
        return True
    return least > before.score * math.exp(before.score_spread or 0.0)


@receiver(run_halted)
def _run(sender: object, run: Run, what: str, now: datetime, **_: object) -> None:
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
def _published(sender: object, version: TaskVersion, now: datetime, **_: object) -> None:
    """Tell who watches a task that another version of it is public."""
    watchers = User.objects.filter(watches__task=version.task).distinct()
    text = f"{version.task.slug}: version {version.number} is now public"
    tell(watchers, NoticeKind.WATCHED, text, version.task.get_absolute_url(), now=now)


@receiver(tick)
def _look_after(sender: object, now: datetime, **_: object) -> None:
    """Send what is due."""
    delivery.look_after(now=now)


@receiver(account_closing)
def _forget(sender: object, user: User, **_: object) -> None:
    """Keep nothing of an account that is deleted."""
    for model in (Watch, Notice, Webhook, Delivery, NoticeSettings):
        model._default_manager.filter(user=user).delete()


@fills(Slot.HEADER)
def _unread(context: Context) -> Filling:
    """How many notices the user has not read; more than 99 are said as 99+."""
    user = context["user"]
    count = Notice.objects.filter(user__pk=user.pk or 0, read_at=None)[:_MOST].count()
    words = "99+" if count == _MOST else str(count)
    return Filling("notices/parts/unread.html", {"count": count, "words": words})


@fills(Slot.TASK)
@fills(Slot.BOARD)
@fills(Slot.RUN)
def _watch_button(
    context: Context,
    task: Task | None = None,
    device: Device | None = None,
    run: Run | None = None,
    slug: str = "",
) -> Filling:
    """Watch a task, a board or a run, or no longer. `slug` names a board's task."""
    request = context["request"]
    task = task or (find_task(slug) if slug else None)
    key = watch_key(task=task, device=device, run=run)
    user = request.user
    watched = user.is_authenticated and Watch.objects.filter(user=user, key=key).exists()
    what = "run" if run else "board" if device else "task"
    values = {
        "user": user,
        "watched": watched,
        "what": what,
        "task": task,
        "device": device,
        "run": run,
        "next": request.get_full_path(),
        "feed": _feed_address(task=task, device=device, run=run),
    }
    return Filling("notices/parts/watch.html", values)


def _feed_address(
    *, task: Task | None = None, device: Device | None = None, run: Run | None = None
) -> str:
    """Where the Atom feed of something is."""
    if run is not None:
        return reverse("run-feed", args=[run.pk])
    if device is not None:
        path = reverse("board-feed", args=[device.pk])
        return f"{path}?task={task.slug}" if task else path
    return reverse("task-feed", args=[task.slug]) if task else ""

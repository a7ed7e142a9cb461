"""Have kernels measured again: on a task's new version, or on the same one once more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode
from runs_app.core.errors import SubmissionError, WrongState
from runs_app.core.work import lifecycle
from runs_app.core.work.admins import check_admin
from runs_app.features.reevaluation.models import Reevaluation
from runs_app.features.reevaluation.plan import Choice, Plan, plan_of
from runs_app.features.reevaluation.selectors import Key, key_of
from runs_app.models import Evaluation, Status, Submission
from tasks_app.models import AuditEntry, Task, TaskVersion
from tasks_app.numbers import counted
from tasks_app.publishing.audit_log import add_entry


@transaction.atomic
def reevaluate(*, choice: Choice, seen: str, user: User, now: datetime) -> Reevaluation:
    """Queue a ranked evaluation of the best kernel of each agent, in the background.

    What is not on the current version yet is entered there in its author's name and counts against
    nobody's quota. `seen` is that of the plan that the admin has confirmed. Raises `NotAllowed` for
    others, `WrongState` if the task is not public or has another version by now, and
    `SubmissionError` (field `seen`) if something else would be queued; nothing is stored then.
    """
    check_admin(user)
    task = Task.objects.select_for_update(no_key=True).get(pk=choice.target.task_id)
    # nobody else enters the shipped kernels now
    TaskVersion.objects.select_for_update(no_key=True).get(pk=choice.target.pk)
    if task.state != Task.State.PUBLISHED:
        raise WrongState(
            "version", f"{task.slug} doesn't accept submissions because it isn't public"
        )
    if task.current_version_id != choice.target.pk:
        raise WrongState("version", f"version {choice.target.number} is no longer the current one")
    plan = plan_of(choice)
    if plan.seen != seen:
        now_planned = f"{counted(plan.count, 'evaluation')} on version {choice.target.number}"
        reason = f"the plan has changed to {now_planned}: review it again, then confirm"
        raise SubmissionError("seen", reason)
    if not plan.count:
        raise SubmissionError("seen", "there is nothing to measure")
    reevaluation = Reevaluation.objects.create(
        source=choice.source,
        target=choice.target,
        devices=[device.slug for device in choice.devices],
        asked_by=user,
        created_at=now,
    )
    reevaluation.evaluations.set(_queue(plan, now))
    _note(reevaluation, str(reevaluation), user, now, evaluations=plan.count)
    return reevaluation


@transaction.atomic
def cancel_reevaluation(*, reevaluation: Reevaluation, user: User, now: datetime) -> int:
    """Take what still waits of a re-evaluation out of the queue; the number of evaluations.

    What runs goes on. Raises `NotAllowed` for others, and `WrongState` if nothing waits.
    """
    check_admin(user)
    waiting = reevaluation.evaluations.filter(status=Status.QUEUED)
    rows = list(waiting.select_related("submission").select_for_update(of=("self",)))
    if not rows:
        raise WrongState("", "nothing is waiting anymore")
    for row in rows:
        lifecycle.cancel(row, reason="canceled by an admin", now=now)
    reason = f"canceled {len(rows)} of its evaluations that were still waiting"
    _note(reevaluation, reason, user, now, cancelled=len(rows))
    return len(rows)


def _queue(plan: Plan, now: datetime) -> Iterable[Evaluation]:
    """Enter what is new, and queue all: the evaluations.

    A microsecond apart, so that pages show them in the order in which RQ holds them.
    """
    wanted = [each.entry or each.evaluation.submission_id for each in plan.queued]
    rows = Submission.objects.select_related("author", "agent", "language_model").in_bulk(wanted)
    target = plan.choice.target  # one object for all: its document is decoded once
    made: dict[Key, Submission] = {}  # one for all devices
    for place, (each, key) in enumerate(zip(plan.queued, wanted, strict=True)):
        moment = now + timedelta(microseconds=place)
        submission = rows[key]
        if each.entry is None:
            earlier, entry = submission, key_of(submission)
            submission = made.get(entry) or _carried(earlier, target, moment)
            made[entry] = submission
        submission.task_version = target
        yield lifecycle.evaluate(
            submission=submission,
            device=each.evaluation.device,
            mode=Mode.RANKED,
            now=moment,
            urgency=Urgency.BACKGROUND,
        )


def _carried(earlier: Submission, target: TaskVersion, now: datetime) -> Submission:
    """The submission that repeats `earlier` on another version."""
    return Submission.objects.create(
        author=earlier.author,
        task_version=target,
        **earlier.same_kernel,
        agent=earlier.agent,
        language_model=earlier.language_model,
        origin=Submission.Origin.CARRIED,
        carried_from=earlier,
        created_at=now,
    )


def _note(
    reevaluation: Reevaluation, reason: str, user: User, now: datetime, **counts: int
) -> None:
    add_entry(
        AuditEntry.Kind.REEVALUATED,
        now=now,
        actor=user,
        version=reevaluation.target,
        reason=reason,
        details={"of": reevaluation.pk, **counts},
    )

"""Have submissions evaluated again: on a task's new version, or on the same one once more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from gpu_runner.data.verdict import Mode
from runs_app.errors import NotAllowed, SubmissionError, WrongState
from runs_app.models import Evaluation, Status, Submission
from runs_app.submissions.shipped import submit_shipped_kernels
from runs_app.work import lifecycle
from tasks_app.curation.reevaluation.plan import Plan, plan_of
from tasks_app.curation.reevaluation.selectors import Choice, Key, What, key_of
from tasks_app.models import AuditEntry, Task, TaskVersion
from tasks_app.publishing.audit_log import add_entry


@transaction.atomic
def reevaluate(*, choice: Choice, count: int, user: User, now: datetime) -> AuditEntry:
    """Queue a ranked evaluation of each chosen submission, in the background.

    What is not on the current version yet is entered there in its author's name and counts against
    nobody's quota. `count` is the number of evaluations that the admin has confirmed. Raises
    `NotAllowed` for others, `WrongState` if the task is not public or has another version by now,
    and `SubmissionError` (field `count`) if another number would be queued; nothing is stored then.
    """
    _check_admin(user)
    task = Task.objects.select_for_update(no_key=True).get(pk=choice.target.task_id)
    # nobody else enters the shipped kernels now
    TaskVersion.objects.select_for_update(no_key=True).get(pk=choice.target.pk)
    if task.state != Task.State.PUBLISHED:
        raise WrongState("version", f"{task.slug} takes no submissions: it is not public")
    if task.current_version_id != choice.target.pk:
        raise WrongState("version", f"version {choice.target.number} is no longer the current one")
    plan = plan_of(choice)
    if plan.count != count:
        reason = f"{plan.count} evaluations would be queued by now, not the {count} that you saw"
        raise SubmissionError("count", f"{reason}: look at them, and confirm again")
    if not plan.count:
        raise SubmissionError("what", "nothing would be evaluated")
    moments = (now + timedelta(microseconds=place) for place in range(count + 1))
    made, queued = _queue(plan, moments)
    for slug in plan.shipped:
        device = next(each for each in choice.devices if each.slug == slug)
        queued += submit_shipped_kernels(device=device, now=next(moments), versions=[choice.target])
    details = _details(plan, made)
    act = add_entry(
        AuditEntry.Kind.REEVALUATED,
        now=now,
        actor=user,
        version=choice.target,
        reason=_sentence(plan),
        details=details,
    )
    rows = Evaluation.objects.filter(pk__in=[evaluation.pk for evaluation in queued])
    rows.update(reevaluation=act)
    return act


@transaction.atomic
def cancel_reevaluation(*, act: AuditEntry, user: User, now: datetime) -> int:
    """Take what still waits of a re-evaluation out of the queue; the number of evaluations.

    What runs goes on. Raises `NotAllowed` for others, and `WrongState` if nothing waits.
    """
    _check_admin(user)
    waiting = act.evaluations.filter(status=Status.QUEUED)
    rows = list(waiting.select_related("submission").select_for_update(of=("self",)))
    if not rows:
        raise WrongState("", "nothing of it waits any more")
    for row in rows:
        lifecycle.cancel(row, reason=f"cancelled by {user.get_username()}", now=now)
    reason = f"cancelled {len(rows)} of its evaluations, which still waited"
    details = {"cancelled": len(rows), "of": act.pk}
    add_entry(
        AuditEntry.Kind.REEVALUATED,
        now=now,
        actor=user,
        version=act.version,
        reason=reason,
        details=details,
    )
    return len(rows)


def _queue(plan: Plan, moments: Iterator[datetime]) -> tuple[int, list[Evaluation]]:
    """Enter what is new, and queue all: the number of new submissions, and the evaluations.

    A microsecond apart, so that pages show them in the order in which RQ holds them.
    """
    new = [each.evaluation.submission_id for each in plan.queued if each.entry is None]
    old = [each.entry for each in plan.queued if each.entry is not None]
    rows = Submission.objects.select_related("author", "agent", "language_model")
    known = rows.in_bulk([*new, *old])
    target = plan.choice.target  # one object for all: its document is decoded once
    made: dict[tuple[Key, bool], Submission] = {}
    queued = []
    for each in plan.queued:
        moment = next(moments)
        if each.entry is not None:
            submission = known[each.entry]
            submission.task_version = target
        else:
            earlier = known[each.evaluation.submission_id]
            submission = _entered(earlier, target, made, moment)
        evaluation = lifecycle.evaluate(
            submission=submission,
            device=each.evaluation.device,
            mode=Mode.RANKED,
            now=moment,
            background=True,
        )
        queued.append(evaluation)
    return len(made), queued


def _entered(
    earlier: Submission,
    target: TaskVersion,
    made: dict[tuple[Key, bool], Submission],
    now: datetime,
) -> Submission:
    """The submission that repeats `earlier`; one for all devices."""
    key = key_of(earlier)
    held = made.get((key, False)) or (made.get((key, True)) if earlier.private else None)
    if held is None:
        held = made[key, earlier.private] = Submission.objects.create(
            author=earlier.author,
            task_version=target,
            source=earlier.source,
            language=earlier.language,
            direction=earlier.direction,
            digest=earlier.digest,
            agent=earlier.agent,
            language_model=earlier.language_model,
            private=earlier.private,
            origin=Submission.Origin.CARRIED,
            carried_from=earlier,
            created_at=now,
        )
    return held


def _details(plan: Plan, made: int) -> dict[str, Any]:
    choice = plan.choice
    details: dict[str, Any] = {
        "from": choice.source.number,
        "to": choice.target.number,
        "devices": [device.slug for device in choice.devices],
        "what": choice.what.value,
        "evaluations": plan.count,
        "submissions": made,
        "shipped": sum(plan.shipped.values()),
    }
    return details | ({"top": choice.top} if choice.what is What.TOP else {})


def _sentence(plan: Plan) -> str:
    choice = plan.choice
    where = ", ".join(device.slug for device in choice.devices)
    if choice.same:
        return f"{choice.words} of version {choice.source.number}, measured again on {where}"
    route = f"of version {choice.source.number} on version {choice.target.number}"
    return f"{choice.words} {route}, on {where}"


def _check_admin(user: User) -> None:
    if not (user.is_active and user.is_staff):
        raise NotAllowed("", "only admins have submissions evaluated again")

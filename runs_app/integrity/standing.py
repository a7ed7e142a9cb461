"""Which evaluations stand on boards: public, ranked, current, free of suspicion, not barred."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import BARRED, COUNTING, Evaluation, Status
from tasks_app.disclosure import sees_hidden
from tasks_app.models import TaskVersion
from tasks_app.people import Viewer


def ranked_evaluations() -> QuerySet[Evaluation]:
    """Finished ranked evaluations of public submissions on current versions of published tasks.

    A SYSTEM_ERROR is not the author's, and so it is not there; nor is what a person has not yet
    decided on or has refused, or what an audit keeps off the board.
    """
    return _counting(_judged())


def standing_evaluations() -> QuerySet[Evaluation]:
    """The correct ones of `ranked_evaluations` that are the latest of their submission and device.

    The fastest of many re-runs would be the luckiest draw; so a re-run replaces what was before,
    even if the new one waits for a person.
    """
    return _standing(_judged())


def standing_on(version: TaskVersion, before: datetime | None = None) -> QuerySet[Evaluation]:
    """What stands on the boards of one version, current or not.

    Of a version that is no longer current: what would stand there if it were. With `before`, what
    had ended by then.
    """
    rows = _entered().filter(task_version=version)
    return _standing(rows if before is None else rows.filter(finished_at__lte=before))


def may_stop(evaluation: Evaluation, user: Viewer) -> bool:
    """Whether `user`, who may cancel a submission's evaluations, may cancel this one.

    An audit is the admins'. So is a ranked evaluation that has begun where an earlier one was
    right: who could stop those that go badly would keep the luckiest of many.
    """
    if sees_hidden(user):
        return True
    if evaluation.mode == Mode.AUDIT:
        return False
    if evaluation.mode != Mode.RANKED or evaluation.status == Status.QUEUED:
        return True
    earlier = evaluation.submission.evaluations.filter(
        mode=Mode.RANKED.value,
        device_id=evaluation.device_id,
        verdict=Verdict.CORRECT.value,
    )
    return not earlier.exclude(pk=evaluation.pk).exists()


def leader(version: TaskVersion, direction: str, device_id: str) -> Evaluation | None:
    """The fastest that stands on a public board; None while nothing does.

    Ordered by the index alone: a second key would have the database sort the whole board.
    """
    rows = standing_evaluations().filter(
        task_version=version, direction=direction, device_id=device_id
    )
    return rows.select_related("submission", "device").order_by("latency_ns").first()


def _standing(judged: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    newer = judged.filter(
        Q(created_at__gt=OuterRef("created_at"))
        | Q(created_at=OuterRef("created_at"), pk__gt=OuterRef("pk")),
        submission=OuterRef("submission"),
        device=OuterRef("device"),
    )
    return _counting(judged).filter(~Exists(newer), verdict=Verdict.CORRECT.value)


def _counting(judged: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    return judged.filter(quarantine__in=COUNTING).exclude(audited__in=BARRED)


def _judged() -> QuerySet[Evaluation]:
    return _entered().filter(
        task_version__task__state="published",
        task_version=F("task_version__task__current_version"),
    )


def _entered() -> QuerySet[Evaluation]:
    return Evaluation.objects.filter(
        mode=Mode.RANKED.value,
        status=Status.FINISHED,
        submission__private=False,
        submission__run__isnull=True,  # candidates of runs were not entered
    ).exclude(verdict=Verdict.SYSTEM_ERROR.value)

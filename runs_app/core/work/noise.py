"""How much evaluations of the same source vary, and what boards make of it.

An evaluation's own interval tells how its calls and processes varied. Another evaluation runs at
another moment on the host, so it differs by more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Coalesce, Greatest

from gpu_runner.data.rounding import three_digits
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from runs_app.models import Audited, Evaluation, Quarantine, Submission
from tasks_app.models import TaskVersion

_LOOKED_AT, _LEAST_SOURCES, _MOST = 2000, 10, 3.0  # the most: times what holds at first
_AT_FIRST = {
    (DeviceKind.CPU, Mode.RANKED): 0.03, (DeviceKind.CPU, Mode.QUICK): 0.08,
    (DeviceKind.CUDA, Mode.RANKED): 0.01, (DeviceKind.CUDA, Mode.QUICK): 0.03,
}  # fmt: skip
"""Used until a device has enough pairs. Source: judgement."""
_SOURCE = ("task_version_id", "direction", "device_id", "guest", "submission__digest")
_ROUGHEST = 0.1  # of the modes that make few calls
_AS = {Mode.AUDIT: Mode.RANKED, Mode.PROFILE: Mode.QUICK}  # they measure by the same plans
_NORMAL = 1.4826 / math.sqrt(2)  # from the median of differences of two to a standard deviation
NINETY_FIVE = 1.96
UNDOUBTED = Q(
    quarantine__in=(Quarantine.NONE, Quarantine.CLEARED),
    audited__in=(Audited.NONE, Audited.WAITING, Audited.PASSED, Audited.INCONCLUSIVE),
)


def noise_between(device_id: str, kind: str, mode: str) -> float:
    """Relative standard deviation of the time between evaluations of one source on a device.

    It comes from the newest evaluations of sources that were measured more than once. Each source
    counts once, so nobody can widen everybody's intervals by repeating a kernel that varies.
    """
    measured_as = _AS.get(Mode(mode), Mode(mode))
    at_first = _AT_FIRST.get((DeviceKind(kind), measured_as), _ROUGHEST)
    rows = Evaluation.objects.filter(
        UNDOUBTED, device_id=device_id, mode=measured_as, verdict=Verdict.CORRECT.value, guest=False
    ).order_by("-finished_at")
    columns = ("submission__digest", "task_version_id", "direction", "latency_ns")
    times: dict[tuple[str, int, str], list[float]] = {}
    for *source, latency_ns in rows.values_list(*columns)[:_LOOKED_AT]:
        times.setdefault((source[0], source[1], source[2]), []).append(latency_ns)
    apart = [_apart(each) for each in times.values() if len(each) > 1]
    if len(apart) < _LEAST_SOURCES:
        return at_first
    return min(statistics.median(apart) * _NORMAL, _MOST * at_first)


def with_noise(spread: float | None, noise: float) -> float:
    """Half the interval that would also hold another evaluation's value."""
    return math.hypot(spread or 0.0, NINETY_FIVE * noise)


def noises(evaluations: Sequence[Evaluation]) -> dict[UUID, float]:
    """By id: the relative standard deviation between evaluations of the source of each.

    It is the device's. Where the source was measured more than once for the same problem, in
    whatever mode, and its times lie further apart, it is theirs.
    """
    if not evaluations:
        return {}
    kinds = {(each.device_id, each.device.kind, each.mode) for each in evaluations}
    of_device = {(kind[0], kind[2]): noise_between(*kind) for kind in kinds}
    rows = Evaluation.objects.filter(
        UNDOUBTED,
        verdict=Verdict.CORRECT.value,
        task_version__in={each.task_version_id for each in evaluations},
        submission__digest__in={each.submission.digest for each in evaluations},
    ).exclude(mode=Mode.TEST.value)
    times: dict[tuple[object, ...], list[float]] = {}
    for latency_ns, *source in rows.values_list("latency_ns", *_SOURCE):
        times.setdefault(tuple(source), []).append(latency_ns)
    return {
        each.pk: max(
            of_device[each.device_id, each.mode],
            _deviation(times.get(_source(each), ())),
        )
        for each in evaluations
    }


def _source(evaluation: Evaluation) -> tuple[object, ...]:
    board = (evaluation.task_version_id, evaluation.direction, evaluation.device_id)
    return (*board, evaluation.guest, evaluation.submission.digest)


def _deviation(values: Iterable[float | None]) -> float:
    logs = [math.log(value) for value in values if value]
    return statistics.stdev(logs) if len(logs) > 1 else 0.0


def pool(evaluation: Evaluation) -> None:
    """Give the ranked evaluations of one source on one board the same score: their mean.

    Their interval is at least as wide as these and the source's audits lie apart.
    Submitting a kernel again is therefore no second try. Evaluations that are in doubt, lack a
    baseline or can't stand on a board neither contribute nor change, and guests' are kept apart.
    Call this in a transaction, and again whenever one of them starts or stops counting. After the
    commit it happens once more: two that end at the same moment can't see each other before.
    """
    if evaluation.mode != Mode.RANKED:
        return
    _pool(evaluation)
    transaction.on_commit(lambda: _pool_by_turns(evaluation), robust=True)


@transaction.atomic
def _pool_by_turns(evaluation: Evaluation) -> None:
    version = TaskVersion.objects.select_for_update(no_key=True).only("pk")
    version.get(pk=evaluation.task_version_id)  # others wait here for their turn
    _pool(evaluation)


def _pool(evaluation: Evaluation) -> None:
    entered = Evaluation.objects.filter(
        UNDOUBTED,
        verdict=Verdict.CORRECT.value,
        task_version=evaluation.task_version_id,
        direction=evaluation.direction,
        device=evaluation.device_id,
        guest=evaluation.guest,
        awaits_baselines=False,
        submission__digest=evaluation.submission.digest,
        submission__private=False,
    ).exclude(submission__origin=Submission.Origin.RUN)
    same = entered.filter(mode=Mode.RANKED.value)
    rows = list(same.select_for_update(of=("self",)).order_by("pk"))
    found = [row.own_score for row in rows if row.own_score]
    if not found:
        return
    together = {"merit": statistics.geometric_mean(found), "draws": len(found)}
    scored = (Mode.RANKED.value, Mode.AUDIT.value)
    times_ns = entered.filter(mode__in=scored).values_list("latency_ns", flat=True)
    apart = NINETY_FIVE * max(_deviation(found), _deviation(times_ns))
    same.filter(score__isnull=False).update(
        score=together["merit"],
        score_spread=Greatest(Coalesce("own_spread", 0.0), Value(three_digits(apart))),
        **together,
    )
    if any(row.pk == evaluation.pk for row in rows):
        evaluation.refresh_from_db(fields=["score", "score_spread", *together])


def _apart(times_ns: Sequence[float]) -> float:
    return statistics.median(abs(math.log(a / b)) for a, b in pairwise(times_ns))

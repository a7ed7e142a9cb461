"""How much evaluations of the same source vary, and what boards make of it.

An evaluation's own interval tells how its calls and processes varied. Another evaluation runs at
another moment on the host, so it differs by more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from django.db import transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, Sqrt

from gpu_runner.data.rounding import three_digits
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from runs_app.models import Audited, Evaluation, Quarantine
from tasks_app.models import TaskVersion

_LOOKED_AT, _LEAST_SOURCES, _MOST = 2000, 10, 3.0  # the most: times what holds at first
_AT_FIRST = {
    (DeviceKind.CPU, Mode.RANKED): 0.03, (DeviceKind.CPU, Mode.QUICK): 0.08,
    (DeviceKind.CUDA, Mode.RANKED): 0.01, (DeviceKind.CUDA, Mode.QUICK): 0.03,
}  # fmt: skip
"""Used until a device has enough pairs. Source: judgement."""
_POOLED = ("score", "score_spread", "merit", "draws", "noise")
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


def widened(column: str) -> Combinable:
    """What `Evaluation.spread` returns, in the database: of a column of evaluations."""
    spread = Coalesce(F(column), 0.0)
    return Sqrt(spread * spread + F("noise") * F("noise"))


def _deviation(values: Iterable[float | None]) -> float:
    logs = [math.log(value) for value in values if value]
    return statistics.stdev(logs) if len(logs) > 1 else 0.0


def pool(evaluation: Evaluation) -> None:
    """Let evaluations of one source on one board agree on its noise and, if ranked, on its score.

    The noise is the device's or, where their times lie further apart, theirs. A ranked score is
    their mean, so submitting a kernel again is no second try; its interval also holds all of them.
    Evaluations that are in doubt or can't stand on a board neither contribute nor change, and
    guests' are kept apart. Those measured by another plan, such as quick ones, don't widen ranked
    ones. Call this in a transaction, and again whenever one of them starts or stops counting.
    After the commit it happens once more for ranked ones: two that end at the same moment can't see
    each other before.
    """
    _pool(evaluation)
    if evaluation.mode == Mode.RANKED:
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
        submission__digest=evaluation.submission.digest,
        submission__private=False,
        submission__run=None,
    )
    plan = _AS.get(Mode(evaluation.mode), Mode(evaluation.mode))
    alike = entered.filter(mode__in=(plan.value, *(m.value for m in _AS if _AS[m] is plan)))
    locked = alike.select_for_update(of=("self",)).order_by("pk")
    apart = _deviation([row.latency_ns for row in locked])
    between = noise_between(evaluation.device_id, evaluation.device.kind, evaluation.mode)
    alike.update(noise=NINETY_FIVE * max(between, apart))
    if plan is Mode.RANKED:
        _pool_scores(alike.filter(awaits_baselines=False))
    if any(row.pk == evaluation.pk for row in locked):
        evaluation.refresh_from_db(fields=_POOLED)


def _pool_scores(entered: QuerySet[Evaluation]) -> None:
    same = entered.filter(mode=Mode.RANKED.value)
    found = [row.own_score for row in same if row.own_score]
    if not found:
        return
    times_ns = entered.values_list("latency_ns", flat=True)
    apart = NINETY_FIVE * max(_deviation(found), _deviation(times_ns))
    merit = statistics.geometric_mean(found)
    same.filter(score__isnull=False).update(
        score=merit,
        merit=merit,
        draws=len(found),
        score_spread=Greatest(Coalesce("own_spread", 0.0), Value(three_digits(apart))),
    )


def _apart(times_ns: Sequence[float]) -> float:
    return statistics.median(abs(math.log(a / b)) for a, b in pairwise(times_ns))

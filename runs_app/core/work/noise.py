"""How much evaluations of the same source vary, and what boards make of it.

An evaluation's own interval tells how its calls and processes varied. Another evaluation runs at
another moment on the host, so it differs by more.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Sqrt

from gpu_runner.data.rounding import three_digits
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from runs_app.models import Audited, Device, Evaluation, Quarantine
from tasks_app.models import TaskVersion

_LOOKED_AT, _LEAST_SOURCES, _MOST = 2000, 10, 3.0  # the most: times what holds at first
_AT_FIRST = {
    (DeviceKind.CPU, Mode.RANKED): 0.03, (DeviceKind.CPU, Mode.QUICK): 0.08,
    (DeviceKind.CUDA, Mode.RANKED): 0.01, (DeviceKind.CUDA, Mode.QUICK): 0.03,
}  # fmt: skip
"""Used until a device has enough pairs. Source: judgement."""
_POOLED = ("score", "score_spread", "merit", "draws", "noise")
_values = attrgetter(*_POOLED)
_ROUGHEST = 0.1  # of the modes that make few calls
_AS = {Mode.AUDIT: Mode.RANKED, Mode.PROFILE: Mode.QUICK}  # they measure by the same plans
_NORMAL = 1.4826 / math.sqrt(2)  # from the median of differences of two to a standard deviation
NINETY_FIVE = 1.96
COUNT = (Audited.NONE, Audited.WAITING, Audited.PASSED, Audited.INCONCLUSIVE)
UNDOUBTED = Q(quarantine__in=(Quarantine.NONE, Quarantine.CLEARED), audited__in=COUNT)


_held: ContextVar[dict[tuple[str, Mode], float] | None] = ContextVar("held", default=None)


def noise_between(device: Device, mode: str) -> float:
    """Relative standard deviation of the time between evaluations of one source on a device.

    It comes from the newest evaluations of sources that were measured more than once. Each source
    counts once, so nobody can widen everybody's intervals by repeating a kernel that varies.
    """
    known, measured_as = _held.get(), _plan(mode)
    if known is None:
        return _measured_noise(device, measured_as)
    if (device.pk, measured_as) not in known:
        known[device.pk, measured_as] = _measured_noise(device, measured_as)
    return known[device.pk, measured_as]


@contextmanager
def held() -> Iterator[None]:
    """Within it, each device's noise is looked up once, because that takes milliseconds."""
    token = _held.set({})
    try:
        yield
    finally:
        _held.reset(token)


def _measured_noise(device: Device, measured_as: Mode) -> float:
    at_first = _AT_FIRST.get((DeviceKind(device.kind), measured_as), _ROUGHEST)
    rows = Evaluation.objects.filter(
        UNDOUBTED, device=device, mode=measured_as, verdict=Verdict.CORRECT.value, guest=False
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


def pool(*evaluations: Evaluation) -> None:
    """Let evaluations of one source on one board agree on its noise and, if ranked, on its score.

    The noise is the device's or, where their times lie further apart, theirs. A ranked score is
    their mean, so submitting a kernel again is no second try; its interval also holds all of them.
    Evaluations that are in doubt or can't stand on a board neither contribute nor change, and
    guests' are kept apart. Those measured by another plan, such as quick ones, don't widen ranked
    ones. Call this in a transaction, and again whenever one of them starts or stops counting.
    After the commit it happens once more for ranked ones: two that end at the same moment can't see
    each other before.
    """
    _pool(evaluations)
    if ranked := [each for each in evaluations if each.mode == Mode.RANKED]:
        transaction.on_commit(lambda: _pool_by_turns(ranked), robust=True)


@transaction.atomic
def _pool_by_turns(evaluations: Sequence[Evaluation]) -> None:
    versions = TaskVersion.objects.select_for_update(no_key=True).only("pk").order_by("pk")
    # others wait here for their turn
    list(versions.filter(pk__in={each.task_version_id for each in evaluations}))
    _pool(evaluations)


def _plan(mode: str) -> Mode:
    return _AS.get(Mode(mode), Mode(mode))


def _source(evaluation: Evaluation) -> tuple[Any, ...]:
    """What those have in common that agree."""
    of_board = (evaluation.task_version_id, evaluation.direction, evaluation.device_id)
    return (*of_board, evaluation.guest, evaluation.submission.digest, _plan(evaluation.mode))


def _pool(evaluations: Sequence[Evaluation]) -> None:
    of_source = {_source(each): each for each in evaluations}
    rows = [row for row in _locked(evaluations) if _source(row) in of_source]
    before = {row: _values(row) for row in rows}
    between = functools.cache(noise_between)
    for source, alike in groupby(sorted(rows, key=_source), _source):
        _agree([*alike], between(of_source[source].device, source[-1]))
    changed = [row for row in rows if _values(row) != before[row]]
    Evaluation.objects.bulk_update(changed, _POOLED)
    known = {row: row for row in rows}
    for each in evaluations:
        for name in _POOLED:
            setattr(each, name, getattr(known.get(each, each), name))


def _locked(evaluations: Sequence[Evaluation]) -> QuerySet[Evaluation]:
    """The undoubted evaluations of these sources, and perhaps others, that can be on a board."""
    plans = {_plan(each.mode) for each in evaluations}
    rows = Evaluation.objects.select_for_update(of=("self",)).filter(
        UNDOUBTED,
        task_version__in={each.task_version_id for each in evaluations},
        device__in={each.device_id for each in evaluations},
        mode__in=[mode.value for mode in Mode if _plan(mode) in plans],
        verdict=Verdict.CORRECT.value,
        submission__digest__in={each.submission.digest for each in evaluations},
        submission__private=False,
        submission__run=None,
    )
    light = rows.select_related("submission").defer("submission__source", "submission__files")
    return light.order_by("pk")


def _agree(rows: Sequence[Evaluation], between: float) -> None:
    """Put on the evaluations of one source what they agree on."""
    noise = NINETY_FIVE * max(between, _deviation(row.latency_ns for row in rows))
    timed = [row for row in rows if _plan(row.mode) is Mode.RANKED]
    ranked = [row for row in timed if row.mode == Mode.RANKED and row.score is not None]
    entered = [row for row in ranked if not row.awaits_baselines]
    found = [row.own_score for row in entered if row.own_score]
    apart = max(_deviation(found), _deviation(row.latency_ns for row in timed))
    merit = statistics.geometric_mean(found) if found else 0.0
    for row in rows:
        row.noise = noise
    for row in ranked:
        row.score_spread = max(row.own_spread or 0.0, three_digits(NINETY_FIVE * apart))
    for row in entered if merit else ():
        row.score, row.merit, row.draws = merit, merit, len(found)


def _apart(times_ns: Sequence[float]) -> float:
    return statistics.median(abs(math.log(a / b)) for a, b in pairwise(times_ns))

"""Rows of a board that one runner measured rest on its fastest time of each baseline.

A row whose baselines had a bad moment would otherwise stand above others for nothing. Rows that
another runner's token measured are left alone: somebody may have taken this one over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from django.db.models import QuerySet

from gpu_runner.data import codec
from gpu_runner.data.baselines import carried
from gpu_runner.data.evaluation import EvaluationResult, Measurement
from gpu_runner.data.scores import with_baselines
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work import journal, noise, outcome
from runs_app.core.work.lifecycle import lockable
from runs_app.core.work.noise import noise_between, with_noise
from runs_app.models import Evaluation, Result, Runner


def agreed(
    evaluation: Evaluation, result: EvaluationResult, between: float, now: datetime
) -> EvaluationResult:
    """A new result with the baselines that the other rows of its runner have faster.

    Those agree already, so the newest of them speaks for all; they get what it has faster. Call it
    in a transaction. between: as of `noise_between`.
    """
    newest = _newest(evaluation, result)
    if newest is None:
        return result
    result = _with_faster(result, newest, between)[0]
    if _faster(result, newest, between):
        _adopt_all(_rows_of(evaluation.runner, evaluation), result, between, now)
    return result


def news(
    found: Mapping[str, Mapping[str, Measurement]], result: EvaluationResult, between: float
) -> dict[str, dict[str, Measurement]]:
    """What a report has that a result lacks, or has slower, by workload and name.

    found: as they would be at the device's speed when the result was measured. between: as of
    `noise_between`.
    """
    known = {workload.name: workload.baselines for workload in result.workloads}
    return {
        workload: {
            name: time
            for name, time in times.items()
            if name not in known.get(workload, {})
            or _is_faster(time, known[workload][name], between)
        }
        for workload, times in found.items()
    }


def mend(
    ranked: Evaluation, audit: Evaluation, result: EvaluationResult, now: datetime
) -> list[str]:
    """Give a locked ranked evaluation, and the rows of the audit's runner, its faster baselines.

    A runner whose baselines are slow flatters every kernel that it measures. Returns their names.
    """
    between = noise_between(ranked.device, ranked.mode)
    names = _adopt(ranked, result, between, now)
    if names:
        noise.pool(ranked)
        _adopt_all(_rows_of(audit.runner, ranked), result, between, now)
    return names


def change(
    evaluation: Evaluation, stored: Result, result: EvaluationResult, between: float, now: datetime
) -> None:
    """Store a locked evaluation's result with other baselines; the caller pools its noise."""
    stored.document = codec.encode(result)
    stored.save(update_fields=["document"])
    outcome.apply(evaluation, result, between)
    journal.tell(evaluation, "baselines", {"speedup": evaluation.speedup_best}, now=now)
    evaluation.save()


def _newest(evaluation: Evaluation, result: EvaluationResult) -> EvaluationResult | None:
    """What the other rows of its runner have, if this one counts for its board."""
    if evaluation.mode != Mode.RANKED or result.verdict is not Verdict.CORRECT:
        return None
    rows = Result.objects.filter(evaluation__in=_rows_of(evaluation.runner, evaluation))
    newest = rows.order_by("-evaluation__finished_at").first()
    return None if newest is None else newest.data


def _rows_of(runner: Runner | None, evaluation: Evaluation) -> QuerySet[Evaluation]:
    """The other ranked evaluations of its board that a runner of this one's token measured."""
    if runner is None:
        return Evaluation.objects.none()
    rows = Evaluation.objects.filter(
        task_version=evaluation.task_version_id,
        device=evaluation.device_id,
        direction=evaluation.direction,
        mode=Mode.RANKED.value,
        verdict=Verdict.CORRECT.value,
        runner__token=runner.token_id,
    )
    return rows.exclude(pk=evaluation.pk)


def _adopt_all(
    rows: QuerySet[Evaluation], measured: EvaluationResult, between: float, now: datetime
) -> None:
    locked = lockable(Evaluation).filter(pk__in=rows).order_by("pk")
    with journal.together():
        noise.pool(*[each for each in locked if _adopt(each, measured, between, now)])


def _adopt(
    evaluation: Evaluation, measured: EvaluationResult, between: float, now: datetime
) -> list[str]:
    """Take over the baselines that are faster in another result; returns their names."""
    stored = Result.objects.select_for_update(of=("self",)).get(evaluation=evaluation)
    mended, names = _with_faster(stored.data, measured, between)
    if names:
        change(evaluation, stored, mended, between, now)
    return names


def _with_faster(
    result: EvaluationResult, measured: EvaluationResult, between: float
) -> tuple[EvaluationResult, list[str]]:
    faster = _faster(measured, result, between)
    if not faster:
        return result, []
    names = sorted({name for found in faster.values() for name in found})
    return with_baselines(result, faster, pending=result.pending_baselines), names


def _faster(
    measured: EvaluationResult, than: EvaluationResult, between: float
) -> dict[str, dict[str, Measurement]]:
    """Baselines that one result has faster than another, beyond noise, by workload and name.

    They are given as they would be at the device's speed when the other was measured, so there are
    none if that is known of only one of them. between: as of `noise_between`.
    """
    anchors = [each.environment.anchor_ns for each in (measured, than)]
    then_ns, now_ns = (anchor.mean if anchor else None for anchor in anchors)
    if (then_ns is None) != (now_ns is None):
        return {}
    known = {workload.name: workload.baselines for workload in than.workloads}
    found: dict[str, dict[str, Measurement]] = {}
    for workload in measured.workloads:
        for name, baseline in workload.baselines.items():
            slow = known.get(workload.name, {}).get(name)
            time = carried(baseline, then_ns, now_ns)
            if slow is not None and _is_faster(time, slow, between):
                found.setdefault(workload.name, {})[name] = time
    return found


def _is_faster(one: Measurement, other: Measurement, between: float) -> bool:
    spreads = (with_noise(each.relative_half_width, between) for each in (one, other))
    return math.log(other.time_ns / one.time_ns) > math.hypot(*spreads)

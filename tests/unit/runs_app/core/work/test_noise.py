"""Repeating a kernel pays nothing, and two evaluations of one source do not differ."""

from __future__ import annotations

import copy
import math
import random
import statistics
import uuid
from datetime import datetime

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from gpu_runner.data import codec
from runs_app.core.integrity.eligibility import leader
from runs_app.core.work import outcome
from runs_app.core.work.noise import noise_between, pool, with_noise
from runs_app.features.compare.submissions import columns, lines
from runs_app.models import Evaluation, Result
from runs_app.submitting.live import live_view
from tasks_app.models import TaskVersion
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs", "believed")]

NOISE = 0.01


def drawn(rng: random.Random, faster: float = 1.0) -> dict[str, object]:
    """The time at some moment of a device that varies by `NOISE`."""
    return {"latency_ns": 1000.0 / faster * rng.lognormvariate(0, NOISE)}


def alike(first: Evaluation, source: str, result: dict[str, object]) -> Evaluation:
    """One of a submission of its own: rows alone, since whole evaluations take ten times as long.

    Nobody has pooled it with others of its source.
    """
    entered, row = copy.copy(first.submission), copy.copy(first)
    entered.pk, row.pk = uuid.uuid4(), uuid.uuid4()
    entered.source = source
    entered.digest = entered.solution.digest()
    row.submission, row.finished_at = entered, make.later(9)
    entered.created_at = make.later(9)
    document = make.make_result(row, **result)
    outcome.apply(row, document, noise_between(row.device, row.mode))
    entered.save(force_insert=True)
    row.save(force_insert=True)
    Result.objects.create(evaluation=row, document=codec.encode(document))
    return row


def entered(rng: random.Random, version: TaskVersion, now: datetime = make.NOW) -> Evaluation:
    """A whole evaluation, whose end does all that follows from it."""
    fields = {"mode": "ranked", "task_version": version, "source": make.SOURCE, "now": now}
    return make.make_finished_evaluation(result=drawn(rng), **fields)


def test_a_kernel_that_is_entered_twenty_times_gains_less_than_its_interval() -> None:
    rng, version = random.Random(1), make.make_task_version()
    entries = [entered(rng, version)]
    entries += [alike(entries[0], make.SOURCE, drawn(rng)) for _ in range(18)]
    entries += [entered(rng, version, make.later(19))]
    first = leader(version, "forward", "cpu")
    assert first is not None
    assert first.draws == 20
    assert first.submission_id == entries[0].submission_id, "of equals, the first leads"
    assert {each.score for each in Evaluation.objects.filter(mode="ranked")} == {first.score}
    gained = (first.score or 0.0) / 1.5  # what it would have without noise
    assert abs(math.log(gained)) < 1.96 * NOISE < with_noise(0.0, NOISE) + 1e-9
    assert len({each.speedup_best for each in entries}) == 20


def test_a_devices_noise_is_that_between_evaluations_of_one_source() -> None:
    rng, version = random.Random(2), make.make_task_version()
    assert noise_between(make.make_cpu(), "ranked") == 0.03, "nothing was measured twice"
    first = entered(rng, version)
    for number in range(15):
        for _ in range(3):
            alike(first, f"// {number}\n", drawn(rng))
    assert noise_between(make.make_cpu(), "ranked") == pytest.approx(NOISE, rel=0.5)
    assert noise_between(make.make_cpu(), "quick") == 0.08


def test_a_source_that_was_measured_apart_has_an_interval_that_holds_all_its_times() -> None:
    version = make.make_task_version()
    times_ns = {"quick": 1000.0, "ranked": 1300.0, "test": 1500.0}
    rows = [
        make.make_finished_evaluation(
            result={"latency_ns": ns}, mode=mode, task_version=version, source=make.SOURCE
        )
        for mode, ns in times_ns.items()
    ]
    Evaluation.objects.filter(mode="test").update(mode="audit")
    rows = [Evaluation.objects.get(pk=row.pk) for row in rows]
    alone = make.make_finished_evaluation(mode="ranked", task_version=version)
    quick, ranked, _ = rows
    pool(ranked)
    apart = 1.96 * statistics.stdev((math.log(1300.0), math.log(1500.0)))
    assert ranked.score_spread == pytest.approx(apart, rel=0.01), "without the quick one"
    assert ranked.noise == pytest.approx(apart)
    assert ranked.spread("latency") == pytest.approx(math.hypot(apart, ranked.latency_spread or 0))
    assert (quick.noise, alone.noise) == pytest.approx((1.96 * 0.08, 1.96 * 0.03))
    Evaluation.objects.filter(mode__in=("ranked", "audit")).update(awaits_baselines=True)
    Evaluation.objects.filter(pk=ranked.pk).update(score_spread=0.001)
    pool(ranked)
    assert ranked.score_spread == pytest.approx(apart, rel=0.01), "of a provisional score, too"
    Evaluation.objects.filter(mode__in=("ranked", "audit")).update(awaits_baselines=False)
    Evaluation.objects.filter(mode="audit").delete()
    pool(ranked)
    assert ranked.score_spread == ranked.own_spread, "what no longer counts widens nothing"
    assert ranked.noise == alone.noise


def test_a_time_has_one_interval_wherever_it_is_shown_and_a_profile_run_changes_none() -> None:
    version = make.make_task_version()
    ranked = make.make_finished_evaluation(mode="ranked", task_version=version, source=make.SOURCE)
    make.pass_audits()

    def shown() -> tuple[object, ...]:
        ranked.refresh_from_db()
        live = live_view(ranked, AnonymousUser(), make.later(9))
        address = "/api/v1/leaderboard?fields=all&device=cpu&by=submission"
        (row,) = Client().get(address).json()["rows"]
        times_ns, width = row["latency_ns"], live.spreads["latency"] or 0.0
        assert row["latency_ns_high"] == pytest.approx(times_ns * math.exp(width))
        assert row["speedup_best_high"] == pytest.approx(
            1.5 * math.exp(live.spreads["speedup"] or 0)
        )
        assert width > (ranked.latency_spread or 0.0)
        return tuple(live.spreads.items())

    before = shown()
    for mode, ns in (("profile", 1200.0), ("quick", 800.0)):
        make.make_finished_evaluation(
            mode=mode, task_version=version, source=make.SOURCE, result={"latency_ns": ns}
        )
    assert shown() == before
    quick = Evaluation.objects.get(mode="quick")
    assert quick.noise == Evaluation.objects.get(mode="profile").noise > 1.96 * 0.08


def test_a_comparison_knows_the_noise() -> None:
    """Of a hundred pairs each: alike in 95 at least, and 5 % are found in 90."""
    rng, version = random.Random(3), make.make_task_version()
    first = entered(rng, version)
    old = [alike(first, f"// {n % 12}\n", drawn(rng)) for n in range(40)]
    new = [alike(first, "// faster\n", drawn(rng, 1.05)) for _ in range(20)]
    for row in (*old[:12], new[0]):
        pool(row)  # with all of its source
    found = {
        column.evaluation.pk: column
        for row in (*old, *new)
        for column in columns([str(row.submission_id)], row.submission.author, "")
        if column.evaluation
    }

    def differs(one: Evaluation, other: Evaluation) -> bool:
        pair = [found[one.pk], found[other.pk]]
        (time,) = [line for line in lines(pair, pair[0]) if line.label == "Time"]
        return time.cells[1].differs

    same = [differs(*rng.sample(old, 2)) for _ in range(100)]
    faster = [differs(rng.choice(old), rng.choice(new)) for _ in range(100)]
    assert statistics.fmean(same) <= 0.05
    assert statistics.fmean(faster) >= 0.9

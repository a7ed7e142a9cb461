"""Boards say who is best only as far as results show it."""

from __future__ import annotations

import pytest
from django.test import Client

from leaderboard_app.boards.groups import LEAST_COMMON, in_common
from leaderboard_app.boards.ranking import Problem, fast_curve
from runs_app.core.integrity.ranking import Estimate
from runs_app.models import Evaluation
from tests import factories
from tests.unit.leaderboard_app.boards.test_board import ranked

pytestmark = pytest.mark.django_db


def opened(client: Client, address: str) -> str:
    return " ".join(client.get(f"/leaderboard/?device=cpu&{address}").content.decode().split())


def agents(client: Client) -> dict[str, dict[str, object]]:
    rows = client.get("/api/v1/leaderboard?device=cpu&by=agent").json()["rows"]
    return {row["name"]: row for row in rows}


def test_a_newcomer_with_one_problem_takes_no_other_out_of_the_comparison() -> None:
    first, second = Problem("first", "forward"), Problem("second", "forward")
    tried = {"one": {first, second}, "two": {first, second}, "new": {first}}
    assert in_common(tried) == (("one", "two"), {first, second})


def test_what_is_provisional_is_not_yet_faster(client: Client) -> None:
    versions = [factories.make_task_version(name=name) for name in ("first", "second")]
    for version in versions:
        ranked(version, speedup=4.0, agent="fast")
        ranked(version, speedup=2.0, agent="slow")
    measured = Evaluation.objects.filter(mode="ranked")
    measured.update(awaits_baselines=True)
    rows = agents(client)
    assert [(row["fast_p"], row["provisional"], row["rank"]) for row in rows.values()] == [
        (0.0, 2, 1),
        (0.0, 2, 2),
    ]
    assert list(rows) == ["fast", "slow"]
    assert "is ahead for now" in opened(client, "by=agent")
    measured.update(awaits_baselines=False, audited="passed")
    assert {row["fast_p"] for row in agents(client).values()} == {1.0}
    assert "as another one, and has the highest mean speedup" in opened(client, "by=agent")


def test_names_that_are_level_have_no_leader(client: Client) -> None:
    version = factories.make_task_version(name="first")
    ranked(version, speedup=2.0, agent="one")
    ranked(version, speedup=2.0, agent="two")
    factories.pass_audits()
    page = opened(client, "by=agent")
    assert "Nobody leads: one and two are" in page
    assert LEAST_COMMON > 1
    assert "too few to call anyone best" in page


def test_results_without_a_score_tie_by_their_times(client: Client) -> None:
    version = factories.make_task_version(name="first")
    for latency_ns in (1000.0, 1010.0, 2000.0):
        row = ranked(version, agent=f"agent-{latency_ns:.0f}")
        Evaluation.objects.filter(pk=row.pk).update(
            score=None, score_spread=None, latency_ns=latency_ns, latency_spread=0.02,
            merit=-latency_ns,
        )  # fmt: skip
    rows = client.get("/api/v1/leaderboard?device=cpu&task=first").json()["rows"]
    assert [(row["rank"], row["tied"], row["ranked_by"]) for row in rows] == [
        (1, True, "listed"),
        (1, True, "listed"),
        (3, False, "listed"),
    ]


def test_a_mean_against_a_baseline_is_over_all_that_it_stands_for(client: Client) -> None:
    versions = [factories.make_task_version(name=name) for name in ("first", "second")]
    rows = [ranked(version, agent="one") for version in versions]
    assert agents(client)["one"]["speedup_compiled"] == pytest.approx(1.5)
    Evaluation.objects.filter(pk=rows[0].pk).update(speedup_compiled=None)
    assert agents(client)["one"]["speedup_compiled"] is None


def test_the_curve_steps_down_where_the_speedups_are() -> None:
    curve = fast_curve([Estimate.exact(1.92), Estimate.exact(3.0)], problems=2)
    assert curve == [(1 / 16, 1.0), (1.92, 0.5), (3.0, 0.0), (16.0, 0.0)]

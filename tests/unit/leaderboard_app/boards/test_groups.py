"""Agents and language models compared over the same problems; nobody is called best too soon."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.verdict import Verdict
from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.groups import LEAST_COMMON, Group, Over, Section, in_common
from leaderboard_app.boards.paired import lead
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.ranking import Entry, Problem, fast_curve
from runs_app.core.integrity.ranking import Estimate
from runs_app.models import Agent, Evaluation, Run
from tasks_app.models import TaskVersion
from tests import factories
from tests.unit.leaderboard_app.boards.test_board import ranked
from tests.unit.leaderboard_app.boards.test_ranking import entry

pytestmark = pytest.mark.django_db


def problems(*names: str) -> set[Problem]:
    return {Problem(name, "forward") for name in names}


def test_names_are_compared_over_what_all_of_them_attempted() -> None:
    tried = {
        "broad": problems(*"abcdefgh"),
        "equal": problems(*"cdefghij"),
        "small": problems("a", "b"),
    }
    assert in_common(tried) == (("broad", "equal"), problems(*"cdefgh"))
    few = {"one": problems("a", "b"), "two": problems("b"), "other": problems("z")}
    assert in_common(few) == (("one", "two"), problems("b"))
    assert in_common({"one": problems("a"), "two": problems("b")}) == ((), set())
    assert in_common({}) == ((), set())


@pytest.fixture
def versions() -> list[TaskVersion]:
    """Two public tasks."""
    return [factories.make_task_version(name=name) for name in ("first", "second")]


def sections(**fields: Any) -> dict[str, Section]:
    query = Query(device="cpu", by=By.AGENT, **fields)
    found = board_of(query, selectors.board_tasks())
    return {section.kind: section for section in found.sections}


def names(section: Section) -> list[tuple[int, str]]:
    return [(ranked.rank, ranked.row.owner) for ranked in section.groups]


def test_people_agents_and_the_sites_own_stand_apart(
    versions: list[TaskVersion], client: Client
) -> None:
    ranked(versions[0], agent="robot")
    ranked(versions[0], speedup=2.0, user=factories.make_user(username="ada"))
    shipped = ranked(versions[0], speedup=3.0, agent="own")
    factories.pass_audits()
    Agent.objects.filter(name="own").update(kind=Agent.Kind.SHIPPED, owner=None)
    found = sections()
    assert {kind: names(section) for kind, section in found.items()} == {
        "agent": [(1, "robot")], "person": [(1, "ada")], "shipped": [(1, "own")],
    }  # fmt: skip
    assert set(sections(who="person")) == {"person"}
    ranked(versions[0], speedup=4.0, agent="z-faster", language_model="brain")
    factories.pass_audits()
    faster = [(1, "z-faster"), (2, "robot")]  # equal shares are told apart by the speedup
    assert names(sections()["agent"]) == faster
    other = ranked(versions[1], agent="other")
    for chosen in ("agent=z-faster", "model=brain"):
        page = client.get(f"/leaderboard/?by=submission&device=cpu&{chosen}").content.decode()
        assert ("z-faster" in page, str(other.submission_id) in page) == (True, False)
    assert found["shipped"].groups[0].row.agent_id == shipped.submission.agent_id


def test_in_common_or_by_own_attempts_or_over_all(
    versions: list[TaskVersion], client: Client
) -> None:
    """A third one attempted nothing of what both others did."""
    first, second = versions
    ranked(first, speedup=2.0, agent="broad")
    ranked(second, speedup=8.0, agent="broad")
    ranked(first, speedup=3.0, agent="narrow")
    ranked(second, verdict=Verdict.WRONG_RESULT, agent="remote")
    factories.pass_audits()

    common = sections()["agent"]
    assert (common.over, common.problems, common.left_out) == (Over.COMMON, 1, ("remote",))
    assert names(common) == [(1, "narrow"), (2, "broad")]
    own = {r.row.owner: r.row for r in sections(over=Over.OWN)["agent"].groups}
    assert {name: (row.solved, row.problems) for name, row in own.items()} == {
        "broad": (2, 2), "narrow": (1, 1), "remote": (0, 1),
    }  # fmt: skip
    whole = {r.row.owner: r.row for r in sections(over=Over.ALL)["agent"].groups}
    assert whole["narrow"].correct_share == 0.5
    alone = sections(agent="broad")["agent"]
    assert alone.over is Over.OWN

    page = client.get("/leaderboard/?device=cpu&by=agent").content.decode()
    assert "remote" in page.split("Left out because they didn't attempt", 1)[1][:200]
    assert "by=submission&amp;device=cpu&amp;agent=narrow" in page
    for over, words in (("own", "Each row covers"), ("all", "Over all 2 tasks")):
        page = client.get(f"/leaderboard/?device=cpu&by=agent&over={over}").content.decode()
        assert words in page


def test_money_and_tokens_are_those_of_public_runs(
    versions: list[TaskVersion], client: Client
) -> None:
    ranked(versions[0], agent="robot")
    agent = Agent.objects.get(name="robot")
    for private, usd in ((False, 1.5), (False, 0.5), (True, 9.0)):
        run = factories.make_run(task_version=versions[0])
        Run.objects.filter(pk=run.pk).update(agent=agent, private=private, usd=usd, tokens=1000)
    [group] = [r.row for r in sections()["agent"].groups]
    assert (group.usd, group.tokens, group.usd_per_solved) == (2.0, 2000, 2.0)
    page = client.get("/leaderboard/?device=cpu&by=agent").content.decode()
    assert "$2.00" in page
    assert "2,000 tokens" in page
    assert "2 runs on 1 task, 0 submitted" in page
    [row] = client.get("/api/v1/leaderboard?fields=all&device=cpu&by=agent").json()["rows"]
    assert (row["usd"], row["tokens"], row["kind"], row["over"]) == (2.0, 2000, "agent", "own")


def group(name: str, usd: float, speedup: float) -> Group:
    speedups = {"best": Estimate.exact(speedup)}
    return Group(
        owner=name, entries=(entry(name, speedups=speedups),), attempted=1, problems=1, judged=1,
        accepted=1, usd=usd,
    )  # fmt: skip


def opened(client: Client, address: str) -> str:
    return " ".join(client.get(f"/leaderboard/?device=cpu&{address}").content.decode().split())


def agents(client: Client) -> dict[str, dict[str, object]]:
    rows = client.get("/api/v1/leaderboard?fields=all&device=cpu&by=agent").json()["rows"]
    return {row["name"]: row for row in rows}


def test_fast_p_leaves_out_what_is_provisional(client: Client) -> None:
    versions = [factories.make_task_version(name=name) for name in ("first", "second")]
    kept, waits = [
        ranked(version, speedup=speed, agent="one")
        for version, speed in zip(versions, (0.5, 4.0), strict=True)
    ]
    factories.pass_audits()
    for sure, waiting, share in ((kept, waits, 0.0), (waits, kept, 1.0)):
        Evaluation.objects.filter(pk=sure.pk).update(awaits_baselines=False)
        Evaluation.objects.filter(pk=waiting.pk).update(awaits_baselines=True)
        row = agents(client)["one"]
        assert (row["fast_p"], row["provisional"], row["rank"]) == (share, 1, 1)
    Evaluation.objects.filter(mode="ranked").update(awaits_baselines=True)
    row = agents(client)["one"]
    assert (row["fast_p"], row["provisional"], row["rank"]) == (None, 2, None)
    path = "/api/v1/leaderboard?device=cpu&by=agent&format=csv"
    [line] = csv.DictReader(io.StringIO(client.get(path).content.decode()))
    assert (line["fast_p"], line["fast_p_low"]) == ("", "")
    assert "–" in opened(client, "by=agent").partition("fast_1")[2]


def test_totals_are_over_results_that_are_not_provisional(client: Client) -> None:
    versions = [factories.make_task_version(name=name) for name in ("first", "second")]
    kept, waits = [
        ranked(v, speedup=s, agent="one") for v, s in zip(versions, (2.0, 9.0), strict=True)
    ]
    factories.pass_audits()
    Evaluation.objects.filter(pk=waits.pk).update(awaits_baselines=True)
    row = agents(client)["one"]
    assert (row["speedup_best"], row["speedup_eager"], row["provisional"]) == (2.0, 2.0, 1)
    page = opened(client, "by=agent&over=own")
    assert "1 provisional excluded" in page
    assert '<span class="sub">±' in page, "with its interval"
    Evaluation.objects.filter(pk=kept.pk).update(awaits_baselines=True)
    row = agents(client)["one"]
    names = ("score", "speedup_best", "speedup_eager", "unlisted_speedup", "p_score")
    assert [row[name] for name in names] == [None] * len(names)


def test_a_lead_is_over_the_tasks_that_both_solved_and_has_an_interval() -> None:
    def solved(*scores: float, first: int = 0) -> list[Entry]:
        return [
            entry("result", value, problem=Problem(f"task-{number:02}", "forward"))
            for number, value in enumerate(scores, first)
        ]

    slow = solved(*[1.0] * 12)
    assert lead(solved(2.0, first=90), slow) is None
    for ratios in ((2.0,), (2.0, 3.0, 2.5), (2.0, 3.0, 2.5) * 4):
        found = lead(solved(*ratios) + solved(50.0, first=90), slow)
        assert found is not None
        assert found.tasks == len(ratios)
        assert found.ratio.mean == pytest.approx(math.prod(ratios) ** (1 / len(ratios)))
        is_clear = found.ratio.low > 1 and found.tasks > 1
        assert ("too close" in found.sentence("one", "two")) == (not is_clear)
        assert found == lead(solved(*ratios), slow), "another answer for the same results"
    mixed = lead(solved(*(2.0, 0.5) * 6), slow)
    assert mixed is not None
    assert mixed.ratio.low < 1 < mixed.ratio.high


def test_a_leader_is_named_where_enough_tasks_are_in_common(client: Client) -> None:
    """And nowhere else: with few tasks, provisional ones, or over what each attempted."""

    def solve(name: str, slow: float) -> None:
        version = factories.make_task_version(name=name)
        ranked(version, speedup=2.0, agent="one")
        ranked(version, speedup=slow, agent="two")

    for number in range(LEAST_COMMON - 1):
        solve(f"task-{number}", 2.0)
    factories.pass_audits()
    page = opened(client, "by=agent")
    assert ("verdict-head" in page, "too few final results" in page) == (False, True)
    parts = ('id="f-task"', "<details", 'name="over"', 'name="p"', "<table", "that all 2 attempted")
    places = [page.index(part) for part in parts]
    assert places == sorted(places), "one row of controls, then numbers, then caveats"
    solve("last", 2.0)
    factories.pass_audits()
    page = opened(client, "by=agent")
    assert "Nobody leads: one and two are" in page
    assert "too few final results" not in page
    assert re.search(r"2.00× ±[\d.]+.%", page), "each mean has its interval"
    assert "verdict-head" not in opened(client, "by=agent&over=own")
    faster = Evaluation.objects.filter(submission__agent__name="one", mode="ranked")
    faster.update(speedup_best=4.0, score=4.0, merit=4.0)
    page = opened(client, "by=agent")
    assert "and has the highest mean speedup" in page
    assert f"Over {LEAST_COMMON} tasks that both solved, one is 2.00× as fast as two" in page
    faster.filter(pk=faster.first().pk).update(awaits_baselines=True)
    page = opened(client, "by=agent")
    assert ("verdict-head" in page, "too few final results" in page) == (False, True)


def test_few_final_results_make_no_leader_of_a_whole_board(client: Client) -> None:
    """However many tasks the board has; and the curves of several tables say that they differ."""
    versions = [factories.make_task_version(name=f"t{number}") for number in range(LEAST_COMMON)]
    for number, version in enumerate(versions):
        if number:
            ranked(version, speedup=2.0, agent="one")
        ranked(version, speedup=2.0, agent="")
    ranked(versions[1], speedup=1.5, agent="two")
    factories.pass_audits()
    page = opened(client, "by=agent&over=all")
    assert ("verdict-head" in page, "too few final results" in page) == (False, True)
    assert "compare a curve only" not in page
    assert "compare a curve only" in opened(client, "by=agent")
    ranked(versions[0], speedup=2.0, agent="one")
    factories.pass_audits()
    assert "verdict-head" in opened(client, "by=agent&over=all")


def test_leaders_and_the_matrix_count_the_same_leads(client: Client) -> None:
    """A result that lacks a baseline takes a lead on neither, whatever its speedup."""
    for name in ("first", "second", "third"):
        version = factories.make_task_version(name=name)
        ranked(version, speedup=2.0, agent="best")
        waits = ranked(version, speedup=9.0, agent="waits")
        rows = Evaluation.objects.filter(pk=waits.pk, task_version__task__slug__lt="third")
        rows.update(awaits_baselines=True, merit=-waits.latency_ns)
    factories.pass_audits()
    assert "best leads the most, with 2" in opened(client, "by=leaders")
    head = opened(client, "by=matrix").partition('class="verdict-head')[2]
    assert "leads 2 of the 3 tasks" in head
    assert "best</a>" in head.partition("leads")[0]


def test_results_without_a_score_tie_by_their_times(client: Client) -> None:
    version = factories.make_task_version(name="first")
    for latency_ns in (1000.0, 1010.0, 2000.0):
        row = ranked(version, agent=f"agent-{latency_ns:.0f}")
        Evaluation.objects.filter(pk=row.pk).update(
            score=None, score_spread=None, latency_ns=latency_ns, latency_spread=0.02,
            merit=-latency_ns,
        )  # fmt: skip
    rows = client.get("/api/v1/leaderboard?fields=all&device=cpu&task=first").json()["rows"]
    assert [(row["rank"], row["tied"], row["ranked_by"]) for row in rows] == [
        (1, True, "time"),
        (1, True, "time"),
        (3, False, "time"),
    ]


def test_a_mean_against_a_baseline_is_over_all_that_it_stands_for(client: Client) -> None:
    versions = [factories.make_task_version(name=name) for name in ("first", "second")]
    rows = [ranked(version, agent="one") for version in versions]
    factories.pass_audits()
    assert agents(client)["one"]["speedup_compiled"] == pytest.approx(1.5)
    Evaluation.objects.filter(pk=rows[0].pk).update(speedup_compiled=None)
    assert agents(client)["one"]["speedup_compiled"] is None


def test_the_curve_steps_down_where_the_speedups_are() -> None:
    curve = fast_curve([Estimate.exact(1.92), Estimate.exact(3.0)], problems=2)
    assert curve == [(1 / 16, 1.0), (1.92, 0.5), (3.0, 0.0), (16.0, 0.0)]

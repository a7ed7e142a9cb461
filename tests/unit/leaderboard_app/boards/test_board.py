"""Which evaluations stand on a board, how it shows them, and what it asks of the database."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Verdict
from leaderboard_app.boards import page as board_page
from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.ranking import Sort
from runs_app.models import Agent, Evaluation, Result
from runs_app.submitting.services import rerun as rerun_submission
from tasks_app.models import TaskVersion
from tests import factories

pytestmark = pytest.mark.django_db

ENTRIES = Query(device="cpu")
AGENTS = Query(device="cpu", by=By.AGENT)


@pytest.fixture
def version() -> TaskVersion:
    """A published task."""
    return factories.make_task_version()


def ranked(
    version: TaskVersion, speedup: float = 1.5, verdict: Verdict = Verdict.CORRECT, **overrides: Any
) -> Evaluation:
    """A finished ranked evaluation, of this speedup if it is correct."""
    result: dict[str, Any] = {}
    if verdict is Verdict.CORRECT:
        result = {
            "latency_ns": 1500.0 / speedup,
            "speedups": {"best": speedup, "eager": speedup, "compiled": speedup},
        }
    fields = {"mode": "ranked", "task_version": version} | overrides
    return factories.make_finished_evaluation(verdict=verdict, result=result, **fields)


def shown(query: Query = ENTRIES) -> list[str]:
    """Ids of the evaluations on a board by submission, in order."""
    found = board_of(query, selectors.board_tasks())
    return [ranked_row.row.evaluation_id for ranked_row in found.entries]


def test_only_correct_ranked_public_results_of_the_current_version_stand(
    version: TaskVersion, client: Client
) -> None:
    for address in ("", "?by=agent", "?by=model"):  # an empty board says what to do
        assert "/submit/" in client.get(f"/leaderboard/{address}").content.decode()
    good = ranked(version, agent="good-robot", language_model="alpha")
    ranked(version, verdict=Verdict.WRONG_RESULT, agent="bad-robot")
    ranked(version, verdict=Verdict.UNSTABLE)
    ranked(version, speedup=9.0, mode="quick")
    ranked(version, speedup=9.0, private=True)
    assert shown() == [str(good.pk)]
    text = client.get("/leaderboard/?device=cpu").content.decode()
    assert f"/submissions/{good.submission_id}/" in text
    assert "bad-robot" not in text
    factories.make_device()
    elsewhere = ranked(version, device="nvidia-h200")
    assert shown(Query(device="nvidia-h200")) == [str(elsewhere.pk)]
    factories.make_task_version(title="Scale a vector, again")
    assert shown() == []


def test_an_author_stands_once_per_task_with_the_fastest(version: TaskVersion) -> None:
    user = factories.make_user()
    ranked(version, speedup=1.2, user=user)
    fast = ranked(version, speedup=1.8, user=user)
    ranked(version, speedup=1.4, user=user)
    agent = ranked(version, speedup=1.3, user=user, agent="robot")
    assert shown() == [str(fast.pk), str(agent.pk)]
    Evaluation.objects.filter(pk=agent.pk).update(merit=5.0)
    assert shown() == [str(agent.pk), str(fast.pk)]
    by_latency = replace(ENTRIES, sort=Sort.LATENCY)  # whatever the speedup
    assert shown(by_latency) == [str(fast.pk), str(agent.pk)]


def again(
    evaluation: Evaluation, seconds: float, speedup: float, verdict: Verdict = Verdict.CORRECT
) -> Evaluation:
    """A finished re-run of an evaluation."""
    rerun = rerun_submission(
        submission=evaluation.submission,
        user=evaluation.submission.author,
        now=factories.later(seconds),
    )
    numbers = {"latency_ns": 1500.0 / speedup, "speedups": {"best": speedup}}
    right = numbers if verdict is Verdict.CORRECT else {}
    result = codec.encode(factories.make_result(rerun, verdict=verdict, **right))
    factories.start(rerun)
    factories.send(rerun, EventKind.FINISHED, {"result": result}, seq=2)
    return rerun


def test_a_submission_stands_with_its_latest_run_and_not_with_the_luckiest(
    version: TaskVersion,
) -> None:
    user = factories.make_user()
    lucky = ranked(version, speedup=1.9, user=user)
    slower = again(lucky, 1, 1.3)
    assert shown() == [str(slower.pk)]
    assert selectors.solved_tasks()["scale"].kind == "provisional"
    factories.pass_audits()
    solved = selectors.solved_tasks()["scale"]
    assert (solved.rated, solved.kind) == (pytest.approx((1.9 * 1.3) ** 0.5), "")
    other = ranked(version, speedup=1.6, user=user)
    assert shown() == [str(other.pk)]
    again(other, 2, 1.0, Verdict.WRONG_RESULT)
    assert shown() == [str(slower.pk)]


def test_agents_keep_their_failures_and_a_system_error_is_not_one(version: TaskVersion) -> None:
    user = factories.make_user()
    ranked(version, user=user, agent="robot")
    ranked(version, verdict=Verdict.COMPILE_ERROR, user=user, agent="robot")
    ranked(version, verdict=Verdict.WRONG_RESULT, user=user, agent="loser")
    lost = factories.make_evaluation(mode="ranked", task_version=version, user=user, agent="robot")
    Evaluation.objects.filter(pk=lost.pk).update(
        status="FINISHED", verdict="SYSTEM_ERROR", finished_at=timezone.now()
    )
    groups = {r.row.owner: r.row for r in board_of(AGENTS, selectors.board_tasks()).groups}
    assert (groups["robot"].judged, groups["robot"].accepted) == (2, 1)
    assert (groups["loser"].solved, groups["loser"].attempted) == (0, 1)
    assert groups["robot"].problems == 1


def test_intervals_come_from_the_workloads(version: TaskVersion) -> None:
    """Each speedup has the noise of both its times, and that between evaluations."""
    noise = ranked(version).noise
    [row] = board_of(ENTRIES, selectors.board_tasks()).entries
    for name in ("eager", "compiled"):
        estimate = row.row.speedups[name]
        assert estimate.high / estimate.value == pytest.approx(
            math.exp(math.hypot(0.01, 0.01, noise))
        )
        assert estimate.low == pytest.approx(estimate.value**2 / estimate.high)
    assert row.row.latency.low < row.row.latency.value < row.row.latency.high
    assert row.row.speedup is not None
    assert row.row.speedup.low < 1.5 < row.row.speedup.high


def test_the_api_names_wrong_fields_and_csv_disarms_formulas(
    client: Client, version: TaskVersion
) -> None:
    user = factories.make_user(username="@SUM(A1)")
    evaluation = ranked(version, user=user)
    answer = client.get("/api/v1/leaderboard?fields=all&by=submission&device=cpu").json()
    assert (answer["by"], answer["device"], answer["problems"]) == ("submission", "cpu", 1)
    [row] = answer["rows"]
    assert (row["evaluation_id"], row["rank"]) == (str(evaluation.pk), 1)
    assert row["latency_ns_low"] < row["latency_ns"] == 1000.0
    for address in ("device=abacus", "p=x", "format=xml"):
        answer = client.get(f"/api/v1/leaderboard?fields=all&{address}")
        assert (answer.status_code, answer.json()["field"]) == (422, address.split("=")[0])
    answer = client.get("/leaderboard/?device=abacus")
    assert (answer.status_code, "abacus" in answer.content.decode()) == (400, True)
    answer = client.get("/api/v1/leaderboard?device=cpu&format=csv")
    assert answer["Content-Type"].startswith("text/csv")
    [row] = csv.DictReader(io.StringIO(answer.content.decode()))
    assert row["submitter"] == "'@SUM(A1)"
    assert float(row["speedup_best"]) == 1.5


def test_names_from_strangers_are_escaped(client: Client, version: TaskVersion) -> None:
    evaluation = ranked(version, agent="robot")
    agent = evaluation.submission.agent
    agent.name = "<script>alert(1)</script>"
    agent.save()
    for address in ("/leaderboard/", "/leaderboard/?by=agent", "/", "/tasks/scale/"):
        text = client.get(address).content.decode()
        assert "<script>alert" not in text, address


_RESULTS = Result._meta.db_table


def fill(rows: int) -> None:
    """That many people, each with one result."""
    version = factories.make_task_version()
    for number in range(rows):
        ranked(version, speedup=1.5 + number / 10, agent=f"robot{number}")
        factories.make_evaluation(task_version=version)


def asked(client: Client, address: str) -> list[str]:
    """The statements behind a page."""
    cache.clear()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return [query["sql"] for query in queries.captured_queries]


def test_more_rows_are_not_more_statements(client: Client) -> None:
    """On boards and other pages; and no board reads a result: those are large."""
    client.force_login(factories.make_admin())
    fill(2)
    kinds = ("leaders", "matrix", "submission", "agent", "model")
    boards = [f"/leaderboard/?by={by}&device=cpu" for by in kinds]
    boards += [f"/api/v1{address}".replace("/?", "?") for address in boards]
    robot = Agent.objects.get(name="robot0").get_absolute_url()
    others = ["/", robot, "/search/?q=robot", "/operate/people/", "/queue/", "/submit/?task=scale"]
    addresses = boards + others + ["/compare/agents/?agent=robot0&agent=robot1&device=cpu"]
    for address in addresses:
        asked(client, address)  # intervals are read once from each result
    before = {address: len(asked(client, address)) for address in addresses}
    fill(4)
    for address in addresses:
        asked(client, address)
    assert {address: len(asked(client, address)) for address in addresses} == before
    assert [sql for each in boards for sql in asked(client, each) if _RESULTS in sql] == []


def test_a_page_and_an_answer_load_the_rows_that_they_show(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_page, "PAGE_ROWS", 2)
    fill(3)
    address = "/leaderboard/?by=submission&device=cpu"
    for page, rows in ((1, 2), (2, 1)):
        queries = asked(client, f"{address}&page={page}")
        [loaded] = [sql for sql in queries if '"runs_app_evaluation"."id" IN (' in sql]
        assert loaded.split(" IN (")[1].count(",") + 1 == rows
    address = "/api/v1/leaderboard?fields=all&by=submission&device=cpu"
    whole = client.get(address).json()["rows"]
    assert len(whole) == 3
    told = client.get(f"{address.replace('fields=all&', '')}&limit=2").json()
    assert [row["submission_id"] for row in told["rows"]] == [
        row["submission_id"] for row in whole[:2]
    ]
    assert "latency_ns_low" in whole[0].keys() - told["rows"][0].keys()
    assert (told["total"], told["left_out"]) == (
        3, "1 row: use limit and after; columns, including intervals: use fields=all",
    )  # fmt: skip
    assert client.get(f"{address}&limit=1&after=1").json()["rows"] == whole[1:2]
    assert client.get(f"{address}&after=2").json()["rows"] == whole[2:]
    assert client.get(f"{address}&limit=1&format=csv").content.count(b"\n") == 2
    assert client.get(f"{address}&limit=0").status_code == 422


def test_a_board_counts_its_rows_without_loading_them() -> None:
    fill(3)
    board = board_of(Query(device="cpu"), selectors.board_tasks())
    with CaptureQueriesContext(connection) as queries:
        assert len(board.entries) == 3
    assert len(queries) == 0
    assert [each.row.author.agent for each in board.entries] == ["robot2", "robot1", "robot0"]
    assert board.entries[1].row.author.agent == "robot1"


def test_pages_answer_where_nothing_can_be_kept(client: Client, settings: Any) -> None:
    backend = "kbench_web.patient_cache.PatientRedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1/0"}}
    fill(2)
    assert "robot1" in client.get("/").content.decode()
    for path in ("/leaderboard/?by=agent", "/queue/"):
        assert client.get(path).status_code == 200


def test_the_default_device_is_asked_only_without_one(client: Client) -> None:
    fill(1)
    for path in ("/leaderboard/", "/api/v1/leaderboard"):
        named, unnamed = asked(client, f"{path}?device=cpu"), asked(client, path)
        assert len(unnamed) == len(named) + 1


@pytest.mark.skipif(connection.vendor != "sqlite", reason="plans of few rows differ")
def test_what_is_newest_is_read_from_an_index() -> None:
    newest = Evaluation.objects.filter(finished_at__isnull=False).order_by("-finished_at")
    assert "evaluation_newest" in newest[:8].explain()
    day = Evaluation.objects.filter(device="cpu", created_at__gte=factories.NOW)
    assert "evaluation_of_device" in day.order_by("-created_at").explain()
    right = Evaluation.objects.filter(device="cpu", mode="ranked", verdict="CORRECT")
    assert "evaluation_right" in right.order_by("-finished_at")[:1].explain()

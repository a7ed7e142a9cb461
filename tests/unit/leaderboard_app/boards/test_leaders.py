"""Who leads each problem, what a week changed, and the matrix of tasks and agents."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from gpu_runner.data.verdict import Abi, Direction, Verdict
from kbench_web.api import api
from leaderboard_app.boards import matrix as matrix_module
from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.history import Day, Leader, progress
from leaderboard_app.boards.matrix import Cell
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.ranking import Author, Entry, Problem, Sort
from leaderboard_app.boards.tables import BRIEF_TABLES, TABLES
from runs_app.core.integrity.ranking import Estimate
from runs_app.models import Evaluation
from tasks_app import spreadsheet
from tasks_app.models import TaskVersion
from tests import factories
from tests.unit.leaderboard_app.boards.test_board import ranked
from tests.unit.leaderboard_app.boards.test_ranking import entry as any_entry

pytestmark = pytest.mark.django_db


def of_days_ago(version: TaskVersion, days: float, **fields: Any) -> Evaluation:
    """A result that ended so many days ago."""
    evaluation = ranked(version, **fields)
    moment = timezone.now() - timedelta(days=days)
    Evaluation.objects.filter(pk=evaluation.pk).update(finished_at=moment, created_at=moment)
    return evaluation


def found(**fields: Any) -> dict[str, Leader]:
    """Leaders by task."""
    query = Query(device="cpu", by=By.LEADERS, **fields)
    return {
        leader.problem.task: leader for leader in board_of(query, selectors.board_tasks()).leaders
    }


@pytest.fixture
def version() -> TaskVersion:
    return factories.make_task_version(name="first")


def test_each_task_has_its_leader_and_different_tasks_are_not_ranked(
    version: TaskVersion, client: Client
) -> None:
    other = factories.make_task_version(name="second")
    best = ranked(version, speedup=2.0, agent="robot")
    ranked(version, speedup=1.5, agent="slower")
    only = ranked(other, speedup=3.0, agent="slower")
    factories.make_task_version(name="nobody")
    leaders = found()
    assert {task: leader.entry.evaluation_id for task, leader in leaders.items()} == {
        "first": str(best.pk), "second": str(only.pk),
    }  # fmt: skip
    assert list(leaders) == ["second", "first"]
    assert list(found(sort=Sort.TASK)) == ["first", "second"]
    page = client.get("/leaderboard/?device=cpu").content.decode()
    assert f"/submissions/{best.submission_id}/?evaluation={best.pk}" in page
    assert '<th scope="col" class="n">Rank' not in page


def test_provisional_leaders_come_last_and_are_not_in_the_picture(
    version: TaskVersion, client: Client
) -> None:
    ranked(version, speedup=2.0)
    ranked(factories.make_task_version(name="third"), speedup=3.0)
    factories.pass_audits()
    ranked(factories.make_task_version(name="second"), speedup=9.0)
    assert list(found()) == ["third", "first", "second"]
    head = client.get("/leaderboard/?device=cpu").content.decode().partition("<table")[0]
    assert ("/tasks/third/" in head, "/tasks/second/" in head) == (True, False)


def test_home_leaders_and_matrix_count_final_leaders_alone(client: Client) -> None:
    for name in ("first", "second"):
        ranked(factories.make_task_version(name=name), speedup=2.0)
    factories.pass_audits()
    ranked(factories.make_task_version(name="third"), speedup=9.0)
    shown = {
        address: " ".join(client.get(address).content.decode().split())
        for address in ("/", "/leaderboard/?device=cpu", "/leaderboard/?device=cpu&by=matrix")
    }
    home, leaders, matrix = shown.values()
    assert ("2 final leaders" in home, "of the 2 tasks" in home) == (True, True)
    assert ('"hero-unit">of 2 tasks' in leaders, "2 of 3 tasks have a" in leaders) == (True, True)
    assert "1 more has only a provisional" in leaders
    assert '"hero-unit">of 2<' in matrix


def test_the_picture_tells_the_directions_of_a_task_apart(client: Client) -> None:
    both = {"abi": Abi.TORCH, "signature": "", "work": {}, "kernels": ()}
    directions = (Direction.FORWARD, Direction.BACKWARD)
    version = factories.make_task_version(name="first", directions=directions, **both)
    ranked(version, speedup=2.0)
    ranked(version, speedup=3.0, direction="backward")
    factories.pass_audits()
    head = client.get("/leaderboard/?device=cpu").content.decode().partition("<table")[0]
    assert ("first</a>" in head, "first, backward</a>" in head) == (True, True)
    assert '"hero-unit">of 2 task directions' in head
    for address in ("/", "/leaderboard/?device=cpu&by=matrix"):
        page = " ".join(client.get(address).content.decode().split())
        assert "of the 2 task directions with a" in page


def test_those_that_lead_equally_often_are_named_together(client: Client) -> None:
    for name in ("one", "two"):
        ranked(factories.make_task_version(name=name), speedup=2.0, agent=f"robot-{name}")
    factories.pass_audits()
    page = client.get("/leaderboard/?device=cpu").content.decode()
    assert "robot-one and robot-two lead the most, with 1 each." in page
    for name in ("three", "four"):
        ranked(factories.make_task_version(name=name), speedup=2.0, agent=f"robot-{name}")
    factories.pass_audits()
    assert "lead the most" not in client.get("/leaderboard/?device=cpu").content.decode()


def test_a_week_tells_who_took_it_from_whom(version: TaskVersion, client: Client) -> None:
    old = of_days_ago(version, 30, speedup=1.0, agent="old")
    assert found()["first"].movement == "same"
    of_days_ago(version, 2, speedup=1.5, agent="old")
    leader = found()["first"]
    assert (leader.movement, leader.gain) == ("improved", pytest.approx(1.5))
    of_days_ago(version, 0, speedup=2.0, agent="new")
    leader = found()["first"]
    assert (leader.movement, leader.gain) == ("taken", pytest.approx(2.0))
    assert leader.before is not None
    assert leader.before.evaluation_id == str(old.pk)
    assert leader.days == (), "no audit has ended"
    assert "not sure yet" in client.get("/leaderboard/?device=cpu").content.decode()
    factories.pass_audits()
    leader = found()["first"]
    assert [day.latency_ns for day in leader.days] == [1500.0, 1000.0, 750.0]
    assert leader.trend == sorted(leader.trend)
    [row] = client.get("/api/v1/leaderboard?fields=all&device=cpu").json()["rows"]
    assert (row["movement"], row["led_before"], row["records"]) == ("taken", "old", 3)
    assert "new leader" in client.get("/leaderboard/?device=cpu").content.decode()
    page = client.get("/leaderboard/?device=cpu&task=first").content.decode()
    assert "3 records since" in page
    other = factories.make_task_version(name="second")
    of_days_ago(other, 0)
    assert found()["second"].movement == "new"


def test_days_choose_what_stands(version: TaskVersion, client: Client) -> None:
    old = of_days_ago(version, 30, agent="old")
    new = of_days_ago(version, 2, speedup=1.1, agent="new")
    cut = (timezone.now() - timedelta(days=10)).date()
    for name, shown, hidden in (("since", new, old), ("until", old, new)):
        address = f"/leaderboard/?by=submission&device=cpu&{name}={cut}"
        page = client.get(address).content.decode()
        assert str(shown.submission_id) in page
        assert str(hidden.submission_id) not in page
    assert found(since=cut)["first"].entry.evaluation_id == str(new.pk)


def test_what_no_board_has_is_refused(client: Client, version: TaskVersion) -> None:
    ranked(version)
    for address in ("device=cpu&by=leaders&sort=latency", "since=now", "who=me"):
        answer = client.get(f"/leaderboard/?{address}")
        assert answer.status_code == 400
    assert client.get("/leaderboard/?foo=1").status_code == 400
    assert client.get("/leaderboard/?device=cpu&page=1").status_code == 200


def test_colours_go_by_doublings_with_a_band_of_noise() -> None:
    for value, spread, shade in (
        (1.0, 0.0, "n"), (1.01, 0.0, "n"), (1.2, 0.3, "n"), (1.2, 0.1, "f1"), (2.0, 0.0, "f1"),
        (2.1, 0.0, "f2"), (100.0, 0.0, "f4"), (0.9, 0.0, "s1"), (0.4, 0.0, "s2"), (0.01, 0.0, "s4"),
    ):  # fmt: skip
        assert Cell(entry(value, spread), attempted=True).shade == shade
    assert (Cell().shade, Cell(attempted=True).shade) == ("none", "failed")


def test_progress_counts_what_is_solved_and_what_is_faster() -> None:
    first, second = factories.NOW.date(), factories.later(86400 * 3).date()
    slow, fast = Day(first, 2.0, 0.5), Day(second, 1.0, 1.5)
    assert progress([(slow, fast), (fast,)]) == [(first, 1, 0), (second, 2, 2)]
    assert progress([]) == []


def entry(value: float = 1.0, spread: float = 0.0, **fields: Any) -> Entry:
    return any_entry("1", speedups={"best": Estimate.around(value, spread)}, **fields)


def test_the_matrix_shows_what_was_solved_and_what_was_attempted(
    version: TaskVersion, client: Client
) -> None:
    good = ranked(version, speedup=2.5, agent="robot")
    ranked(version, verdict=Verdict.WRONG_RESULT, agent="loser")
    factories.pass_audits()
    matrix = board_of(Query(device="cpu", by=By.MATRIX), selectors.board_tasks()).matrix
    assert [column.name for column in matrix.columns] == ["robot", "loser"]
    [row] = matrix.rows
    assert row.problem.task == "first"
    assert [each.shade for each in row.cells] == ["f2", "failed"]
    page = client.get("/leaderboard/?device=cpu&by=matrix").content.decode()
    assert f"/submissions/{good.submission_id}/?evaluation={good.pk}" in page
    assert "attempted, not solved" in page
    rows = client.get("/api/v1/leaderboard?fields=all&device=cpu&by=matrix").json()["rows"]
    assert [(row["agent"], row["solved"]) for row in rows] == [("robot", True), ("loser", False)]


def test_a_problem_of_one_agent_is_listed_below_the_matrix(
    version: TaskVersion, client: Client
) -> None:
    ranked(factories.make_task_version(name="alone"), speedup=2.0, agent="able")
    for agent in ("able", "zealous"):
        ranked(version, speedup=1.5, agent=agent)
    factories.pass_audits()
    page = client.get("/leaderboard/?device=cpu&by=matrix").content.decode()
    table, _, below = page.partition("</table>")
    assert ("task=first" in table, 'task=alone"' in table) == (True, False)
    assert ('task=alone"' in below, "only by able" in below, "only by zealous" in below) == (
        True,
        True,
        False,
    )


def test_kinds_that_are_nearly_empty_stand_last() -> None:
    names = [f"t{n}" for n in range(11)]
    naive, robot = Author("", "naive", "", "shipped"), Author("", "robot", "", "agent")
    shipped = [entry(problem=Problem(name, "forward"), author=naive) for name in names]
    few = matrix_module.matrix(
        [*shipped, entry(problem=Problem("t0", "forward"), author=robot)], {}
    )
    assert [column.name for column in few.columns] == ["naive", "robot"]
    robots = [entry(problem=Problem(name, "forward"), author=robot) for name in names[:2]]
    more = matrix_module.matrix([*shipped, *robots], {})
    assert [column.name for column in more.columns] == ["robot", "naive"]


def test_every_board_can_be_taken_home(
    version: TaskVersion, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet

    ranked(version, speedup=2.0, agent="robot", language_model="brain")
    factories.pass_audits()
    for by in By:
        address = f"/api/v1/leaderboard?fields=all&device=cpu&by={by.value}"
        rows = client.get(address).json()["rows"]
        answer = client.get(f"{address}&format=parquet")
        assert answer["Content-Type"] == "application/vnd.apache.parquet"
        assert f"kbench-{by.value}-cpu.parquet" in answer["Content-Disposition"]
        table = pyarrow.parquet.read_table(io.BytesIO(answer.content))
        assert table.to_pylist() == rows
        [row] = rows
        assert row["speedup_best"] == 2.0
        header, _, end = client.get(f"{address}&format=csv").content.decode().split("\n")
        assert (header.split(","), end) == (list(row), "")
        assert header.split(",") == table.schema.names == list(TABLES[by].fields)
    monkeypatch.setattr(spreadsheet.importlib.util, "find_spec", lambda name: None)
    told = client.get("/api/v1/leaderboard?format=parquet")
    assert (told.status_code, told.json()["field"]) == (422, "format")
    assert "kbench[parquet]" in told.json()["reason"]


def test_every_board_says_which_baseline_a_speedup_is_over(
    version: TaskVersion, client: Client
) -> None:
    known = ranked(version, speedup=2.0, agent="robot")
    factories.pass_audits()

    def told(by: By) -> str:
        [row] = client.get(f"/api/v1/leaderboard?device=cpu&by={by.value}").json()["rows"]
        return str(row["compared_with"])

    boards = [By.LEADERS, By.MATRIX, By.SUBMISSION, By.AGENT]
    assert [told(by) for by in boards] == ["best"] * 4
    assert "vs eager</span>" not in client.get("/leaderboard/?by=matrix").content.decode()
    Evaluation.objects.filter(pk=known.pk).update(awaits_baselines=True, speedup_compiled=None)
    assert [told(by) for by in boards] == ["eager", "eager", "eager", ""]
    assert "vs eager</span>" in client.get("/leaderboard/?by=matrix").content.decode()
    shown = client.get("/leaderboard/?by=leaders&device=cpu").content.decode()
    assert "compared with the eager baseline" in shown
    assert "compared with the best baseline" not in shown
    Evaluation.objects.filter(pk=known.pk).update(speedup_best=None, speedup_eager=None)
    assert [told(by) for by in boards] == [""] * 4


def test_the_api_s_schema_has_the_type_of_every_column() -> None:
    schemas = api.get_openapi_schema()["components"]["schemas"]
    kinds = schemas["BoardOut"]["properties"]["rows"]["anyOf"]
    rows = [schemas[kind["items"]["$ref"].rpartition("/")[2]] for kind in kinds]
    assert [list(row["properties"]) for row in rows] == [
        list(tables[by].fields)
        for tables in (TABLES, BRIEF_TABLES)
        for by in By
        if by is not By.MODEL
    ]
    for row in rows:
        assert all("type" in each or "anyOf" in each for each in row["properties"].values())
        assert set(row["required"]) == set(row["properties"])


def test_the_matrix_has_the_agents_that_solved_most(
    version: TaskVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_module, "MOST_COLUMNS", 1)
    other = factories.make_task_version(name="second")
    for each in (version, other):
        ranked(each, speedup=1.5, agent="zealous")
    ranked(version, speedup=2.0, agent="able")
    Evaluation.objects.filter(mode="ranked").update(audited="passed")
    for verified in (False, True):
        query = Query(device="cpu", by=By.MATRIX, verified=verified)
        matrix = board_of(query, selectors.board_tasks()).matrix
        assert ([column.name for column in matrix.columns], matrix.left_out) == (["zealous"], 1)
        assert [row.cells[0].attempted for row in matrix.rows] == [True, True]


def test_a_day_has_its_fastest_and_only_days_of_records_are_there(version: TaskVersion) -> None:
    for days, speedup in ((9, 1.0), (8, 0.5), (7, 1.5), (7 - 1e-6, 2.0), (6, 1.9)):
        of_days_ago(version, days, speedup=speedup, agent=f"robot{days}")
    factories.pass_audits()
    days = found()["first"].days
    assert [day.score for day in days] == [pytest.approx(1.0), pytest.approx(2.0)]
    assert (days[1].day - days[0].day).days == 2
    assert days[0].latency_ns == pytest.approx(2 * days[1].latency_ns)

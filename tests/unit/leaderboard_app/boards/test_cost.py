"""What a board asks of the database does not grow with its rows."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard_app.boards import page as board_page
from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.query import Query
from runs_app.models import Agent, Evaluation, Result
from tests import factories
from tests.unit.leaderboard_app.boards.test_board import ranked

pytestmark = pytest.mark.django_db

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
    address = "/api/v1/leaderboard?by=submission&device=cpu"
    whole = client.get(address).json()["rows"]
    assert len(whole) == 3
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

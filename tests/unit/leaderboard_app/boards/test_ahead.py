"""Usual boards are made ahead: which, when again, and that readers find them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard_app.boards import ahead as module
from leaderboard_app.boards.ahead import LEAST_S, QUIET_S, SHARE, Ahead
from leaderboard_app.boards.board import board
from leaderboard_app.boards.query import By, Query, default_sort
from leaderboard_app.boards.selectors import board_tasks
from runs_app.models import Evaluation
from runs_app.work import withdrawn
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


class Site:
    """A site with one result on a CPU; the clock is the test's, and making takes `takes` s."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.takes = 1000.0, 0.0
        monkeypatch.setattr("leaderboard_app.boards.board.LONG", 1)
        monkeypatch.setattr("leaderboard_app.boards.places.LONG", 1)
        monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(module, "make_ahead", self._make)
        self.first = make.make_finished_evaluation(mode="ranked", agent="one")
        self.ahead = Ahead()

    def _make(self, devices: list[str]) -> None:
        make_ahead(devices)
        self.now += self.takes

    def wait(self, seconds: float) -> list[str]:
        self.now += seconds
        return self.ahead.step()

    def another(self, **more: Any) -> Evaluation:
        """A result that is newer than all."""
        row = make.make_finished_evaluation(mode="ranked", agent="two", **more)
        newest = self.first.finished_at + timedelta(hours=1)
        Evaluation.objects.filter(pk=row.pk).update(finished_at=newest)
        return row


make_ahead = module.make_ahead


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    cache.clear()
    return Site(monkeypatch)


def _rows(by: By) -> int:
    found = board(Query(device="cpu", by=by, sort=default_sort(by, "")), board_tasks())
    shown = (found.entries, found.groups, found.leaders, found.matrix.rows)
    return max(len(rows) for rows in shown)


def test_readers_find_what_was_made_ahead(site: Site) -> None:
    assert site.wait(0) == ["cpu"]
    tasks = board_tasks()
    for by, most in ((By.SUBMISSION, 0), (By.AGENT, 0), (By.MATRIX, 0)):
        with CaptureQueriesContext(connection) as queries:
            board(Query(device="cpu", by=by, sort=default_sort(by, "")), tasks)
        assert len(queries) == most, by


def test_the_first_page_ranks_nothing_that_was_made_ahead(site: Site, client: Client) -> None:
    site.ahead.step()
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/").status_code == 200
    assert not [query for query in queries if 'latency_ns" ASC' in query["sql"]]


def test_a_new_result_comes_onto_boards_of_its_device(site: Site) -> None:
    site.ahead.step()
    make.make_device(slug="h100", name="H100")
    assert _rows(By.SUBMISSION) == 1
    site.another()
    assert _rows(By.SUBMISSION) == 1
    assert site.wait(LEAST_S) == ["cpu"]
    assert _rows(By.SUBMISSION) == 2
    assert site.wait(LEAST_S) == []


def test_making_boards_of_new_results_takes_a_share_of_a_core(site: Site) -> None:
    site.takes = 3.0
    site.ahead.step()
    site.another()
    assert site.wait(3.0 / SHARE - 1) == []
    assert site.wait(1) == ["cpu"]


def test_all_are_made_again_before_what_is_kept_is_dropped(site: Site) -> None:
    site.ahead.step()
    assert site.wait(QUIET_S - 1) == []
    assert site.wait(1) == ["cpu"]


def test_what_is_withdrawn_has_all_made_at_once(
    site: Site, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    site.ahead.step()
    with django_capture_on_commit_callbacks(execute=True):
        withdrawn.note()
    assert site.wait(0.1) == ["cpu"]
    assert site.wait(0.1) == []


def test_a_site_without_results_has_nothing_to_make() -> None:
    assert Ahead().step() == []


def test_the_command_makes_them_once(site: Site) -> None:
    call_command("keep_boards", "--once")
    site.another()
    assert _rows(By.SUBMISSION) == 1


def test_the_page_takes_as_many_queries_with_more_results(site: Site, client: Client) -> None:
    def asked() -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/leaderboard/").status_code == 200
        return len(queries)

    asked()
    before = asked()
    for _ in range(5):
        site.another()
    assert asked() == before

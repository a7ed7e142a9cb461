"""Contaminated tasks count in no figure over tasks, and keep their own board."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.board import top
from leaderboard_app.boards.query import By, Query
from runs_app.features.curation.decisions.services import mark_contaminated
from runs_app.models import Evaluation
from tests import factories

pytestmark = pytest.mark.django_db

REASON = "its fastest kernel is in every training set"


def ranked(name: str, speedup: float, **overrides: Any) -> Evaluation:
    """A finished, correct, ranked evaluation of "robot" on the task of this name."""
    result = {"latency_ns": 1500.0 / speedup, "speedups": {"best": speedup}}
    return factories.make_finished_evaluation(
        result=result, mode="ranked", agent="robot", language_model="alpha",
        task_version=factories.make_task_version(name=name), **overrides,
    )  # fmt: skip


@pytest.fixture
def pair() -> dict[str, Evaluation]:
    """Results on a clean and on a contaminated task."""
    user = factories.make_user()
    found = {name: ranked(name, speed, user=user) for name, speed in (("clean", 2), ("known", 8))}
    mark_contaminated(
        task=found["known"].task_version.task,
        user=factories.make_admin(), reason=REASON, now=factories.NOW,
    )  # fmt: skip
    return found


@pytest.mark.usefixtures("pair")
def test_boards_of_authors_leave_them_out() -> None:
    def group(by: By, **fields: Any) -> Any:
        query = Query(device="cpu", by=by, **fields)
        return board_of(query, selectors.board_tasks()).groups[0].row

    factories.pass_audits()
    for by in (By.AGENT, By.MODEL):
        clean = group(by)
        assert (clean.problems, clean.solved, clean.attempted, clean.judged) == (1, 1, 1, 1)
        assert clean.speedup.value == pytest.approx(2.0)
        everything = group(by, contaminated=True)
        assert (everything.problems, everything.solved, everything.judged) == (2, 2, 2)
        assert everything.speedup.value == pytest.approx(4.0)
        assert group(by, task="known").speedup.value == pytest.approx(8.0)


def test_pages_say_what_is_left_out_and_how_to_see_it(
    client: Client, pair: dict[str, Evaluation]
) -> None:
    def places(address: str) -> tuple[set[str], str]:
        text = client.get(address).content.decode()
        return {name for name, row in pair.items() if str(row.submission_id) in text}, text

    shown, text = places("/leaderboard/")
    assert shown == {"clean"}
    assert "contaminated=1" in text
    assert places("/leaderboard/?contaminated=1")[0] == {"clean", "known"}
    shown, text = places("/leaderboard/?task=known")
    assert shown == {"known"}
    assert REASON in text
    assert places("/")[0] == {"clean", "known"}  # the latest evaluations list both
    assert "left out" not in places("/leaderboard/?task=clean")[1]
    assert client.get("/leaderboard/?contaminated=perhaps").status_code == 400


def test_the_first_page_has_no_board_of_contaminated_results_alone(client: Client) -> None:
    evaluation = ranked("known", 8)
    mark_contaminated(
        task=evaluation.task_version.task,
        user=factories.make_admin(), reason=REASON, now=factories.NOW,
    )  # fmt: skip
    assert top(Query(device="cpu", task="known"), 5)
    assert "Furthest ahead" not in client.get("/").content.decode()


def test_the_api_and_its_files_leave_them_out(client: Client, pair: dict[str, Evaluation]) -> None:
    answer = client.get("/api/v1/leaderboard?fields=all&device=cpu").json()
    assert [row["task"] for row in answer["rows"]] == ["clean"]
    assert answer["contaminated_tasks"] == [{"task": "known", "reason": REASON}]
    assert (answer["contaminated"], answer["problems"]) == (False, 1)
    answer = client.get("/api/v1/leaderboard?fields=all&device=cpu&contaminated=1").json()
    assert {row["task"] for row in answer["rows"]} == {"clean", "known"}
    assert (answer["contaminated"], answer["problems"]) == (True, 2)
    text = client.get("/api/v1/leaderboard?format=csv").content.decode()
    assert "clean" in text
    assert "known" not in text
    [group] = client.get("/api/v1/leaderboard?fields=all&by=agent").json()["rows"]
    assert (group["problems"], group["solved"]) == (1, 1)

"""A result's page, the API and the client say the place that its board shows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from gpu_runner.data.verdict import Abi, Direction
from kbench_client.results import standing_line
from runs_app.core.integrity.board_place import board_place
from runs_app.models import Evaluation
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def ranked(version: Any, latency_ns: float, score: float, **overrides: Any) -> Evaluation:
    speedups = {"speedups": {"best": score}, "unlisted_speedups": {"best": score}}
    result = {"latency_ns": latency_ns, **speedups, **overrides.pop("result", {})}
    return factories.make_finished_evaluation(
        mode="ranked", task_version=version, result=result, **overrides
    )


def told(evaluation: Evaluation) -> dict[str, Any]:
    path = f"/api/v1/submissions/{evaluation.submission_id}"
    found = Client().get(path).json()["evaluations"]
    return dict(next(each for each in found if each["id"] == str(evaluation.pk)))


def test_the_page_the_api_and_the_client_say_what_the_board_shows() -> None:
    version = factories.make_task_version()
    for score in (1.0, 1.01, 4.0, 2.0, 8.0):
        ranked(version, 1000 / score, score)
    factories.pass_audits()
    address = f"/api/v1/leaderboard?task={version.task.slug}&device=cpu&fields=all"
    board = Client().get(address).json()["rows"]
    assert [row["rank"] for row in board] == [1, 2, 3, 4, 4]
    for row in board:
        found = Evaluation.objects.get(pk=row["evaluation_id"])
        place = told(found)["place"]
        assert (place["rank"], place["tied"], place["of"]) == (row["rank"], row["tied"], 5)
        assert standing_line(told(found)) == place["words"]
        page = Client().get(f"/submissions/{found.submission_id}/").content.decode()
        assert place["words"] in page
        address, anchor = place["address"].split("#")
        assert f'href="{address.replace("&", "&amp;")}#{anchor}"' in page
        shown = Client().get(address).content.decode()
        [line] = re.findall(rf'<tr[^>]*>(?:(?!</tr>).)*id="{anchor}".*?</tr>', shown, re.S)
        assert f">{row['rank']}</td>" in line or f"{row['rank']}</span>" in line


def test_a_provisional_result_claims_no_place() -> None:
    version = factories.make_task_version()
    waits = ranked(version, 500.0, 2.0, result={"pending_baselines": ("compiled",)})
    place = told(waits)["place"]
    assert (place["rank"], place["of"]) == (None, 1)
    assert place["words"].endswith("is provisional")
    rows = Evaluation.objects.filter(pk=waits.pk)
    rows.update(awaits_baselines=False, audited="waiting")
    assert told(waits)["place"]["words"].endswith("is provisional")
    assert told(waits)["waiting_reason"].startswith("still ranking")


def test_a_better_result_of_the_same_author_takes_the_place() -> None:
    version, user = factories.make_task_version(), factories.make_user()
    ranked(version, 500.0, 2.0, user=user)
    slower = ranked(version, 1000.0, 1.0, user=user, source="// slower")
    place = told(slower)["place"]
    assert place["rank"] is None
    assert place["words"].endswith("board shows a better result by its author")
    assert "#" not in place["address"]
    words = [board_place(slower, each).words for each in (user, AnonymousUser())]
    assert [said.rpartition(" ")[2] for said in words] == ["yours", "author"]
    quick = factories.make_finished_evaluation(task_version=version)
    assert told(quick)["place"] is None


def test_each_direction_has_a_board_of_its_own_and_long_ones_have_pages(monkeypatch: Any) -> None:
    both = (Direction.FORWARD, Direction.BACKWARD)
    torch = {"abi": Abi.TORCH, "signature": "", "work": {}, "kernels": (), "directions": both}
    version = factories.make_task_version(**torch)
    ranked(version, 500.0, 2.0)
    backward = ranked(version, 1000.0, 1.0, direction="backward")
    factories.pass_audits()
    place = told(backward)["place"]
    assert (place["rank"], place["of"]) == (1, 1)
    assert "backward board" in place["words"]
    assert "direction=backward" in place["address"]
    monkeypatch.setattr("runs_app.core.integrity.board_place.PAGE_ROWS", 1)
    last = ranked(version, 2000.0, 0.5)
    assert "page=2#e-" in told(last)["place"]["address"]


def test_a_result_without_all_baselines_ranks_below_slower_ones_that_have_all() -> None:
    """Its score is only against what is known, and falls when the other baselines come in."""
    version, agents = factories.make_task_version(), ("eager-only", "whole")
    pending = {"pending_baselines": ("compiled",)}
    waits = ranked(version, 900.0, 2.0, agent=agents[0], result=pending)
    whole = ranked(version, 1000.0, 1.2, agent=agents[1])
    factories.pass_audits()
    leaderboard = f"/leaderboard/?device=cpu&task={version.task.slug}"
    api = "/api" + leaderboard.replace("/leaderboard/", "/v1/leaderboard")
    for sort, ranks in (("score", [1, 2]), ("speedup", [1, None]), ("p", [1, None])):
        rows = Client().get(f"{api}&sort={sort}").json()["rows"]
        assert [(row["agent"], row["rank"]) for row in rows] == [
            ("whole", ranks[0]), ("eager-only", ranks[1]),
        ], sort  # fmt: skip
    everything = Client().get("/api/v1/leaderboard?device=cpu&by=submission&sort=score").json()
    assert [row["agent"] for row in everything["rows"]] == ["whole", "eager-only"]
    [leader] = Client().get("/api/v1/leaderboard?device=cpu&by=leaders").json()["rows"]
    assert leader["agent"] == "whole"
    for address in (leaderboard, f"/tasks/{version.task.slug}/"):
        head = Client().get(address).content.decode().partition('class="verdict-head')[2]
        assert f"/submissions/{whole.submission_id}/" in head.partition("<table")[0], address
    assert told(whole)["place"]["rank"] == 1
    Evaluation.objects.filter(pk=whole.pk).delete()
    assert 'class="verdict-said neutral' in Client().get(leaderboard).content.decode()
    assert told(waits)["place"]["rank"] is None

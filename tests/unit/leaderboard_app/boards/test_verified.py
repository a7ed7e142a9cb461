"""What an audit has not passed is called so, and can be left out of boards."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client

from gpu_runner.data.facts import Facts
from gpu_runner.data.integrity import Audit, AuditCheck, AuditState
from leaderboard_app.boards import selectors
from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.query import By, Query
from runs_app.core.integrity.eligibility import leader
from runs_app.models import Evaluation
from tests.unit.runs_app.core.integrity.suspicious import MEMCHECK, end_audit, held, ranked

pytestmark = pytest.mark.django_db

FAILED = AuditCheck(name="racecheck", state=AuditState.FAILED, reason="2 hazards")


@pytest.fixture
def pair() -> tuple[Evaluation, Evaluation]:
    """A leader whose audit passed, and a slower result that nobody has audited."""
    first = ranked(agent="swift")
    end_audit(first, MEMCHECK)
    slower = {"latency_ns": 2000.0, "speedups": {"best": 1.0, "eager": 1.0}}
    second = ranked(
        task_version=first.task_version, agent="slow", source="// slow\n", result=slower
    )
    return first, second


def test_boards_say_what_is_verified(pair: tuple[Evaluation, Evaluation], client: Client) -> None:
    rows = client.get("/api/v1/leaderboard?fields=all&by=submission&device=cpu").json()["rows"]
    assert [(row["agent"], row["audited"], row["verified"]) for row in rows] == [
        ("swift", "passed", True), ("slow", "none", False),
    ]  # fmt: skip
    for address in ("/leaderboard/?by=submission&device=cpu", "/tasks/scale/", "/"):
        text = client.get(address).content.decode()
        assert ">Verified</button>" in text, address  # what it means is shown on a touch
        assert ">Ranked</button>" in text, address


def test_verified_only(pair: tuple[Evaluation, Evaluation], client: Client) -> None:
    answer = client.get("/api/v1/leaderboard?fields=all&device=cpu&verified=1").json()
    assert answer["verified"] is True
    assert [row["evaluation_id"] for row in answer["rows"]] == [str(pair[0].pk)]
    csv = client.get("/api/v1/leaderboard?device=cpu&verified=1&format=csv").content.decode()
    assert "swift" in csv
    assert "slow" not in csv
    text = client.get("/leaderboard/?device=cpu&verified=1").content.decode()
    assert 'name="verified" value="1" checked' in text
    assert "slow" not in text
    board = board_of(Query(device="cpu", by=By.AGENT, verified=True), selectors.board_tasks())
    assert {row.row.owner: row.row.solved for row in board.groups} == {"swift": 1, "slow": 0}


def test_what_a_person_must_decide_or_an_audit_refused_counts_nowhere(client: Client) -> None:
    first = ranked(agent="cheat")
    end_audit(first, FAILED)
    held(task_version=first.task_version, agent="odd", source="// odd\n")
    assert client.get("/api/v1/leaderboard?fields=all&device=cpu").json()["rows"] == []
    assert client.get("/api/v1/leaderboard?fields=all&device=cpu&by=agent").json()["rows"] == []
    assert selectors.solved_tasks() == {}
    assert selectors.devices_with_results() == []


def test_the_leader_is_found_by_an_index(pair: tuple[Evaluation, Evaluation]) -> None:
    first = pair[0]
    assert leader(first.task_version, "forward", "cpu") == first
    rows = Evaluation.objects.filter(
        task_version=first.task_version, direction="forward", device="cpu", mode="ranked",
        verdict="CORRECT", replaced=False,
    ).order_by("latency_ns")  # fmt: skip
    if connection.vendor == "sqlite":
        assert "evaluation_record" in rows.explain()
        verified = rows.filter(audited="passed")
        assert "USING INDEX evaluation_" in verified.explain()


def test_what_a_guest_measured_is_called_so_and_can_be_left_out(
    pair: tuple[Evaluation, Evaluation], client: Client
) -> None:
    Evaluation.objects.filter(pk=pair[0].pk).update(guest=True)
    answer = client.get("/api/v1/leaderboard?fields=all&by=submission&device=cpu").json()
    assert [(row["agent"], row["guest"]) for row in answer["rows"]] == [
        ("swift", True), ("slow", False),
    ]  # fmt: skip
    submission = pair[0].submission.get_absolute_url()
    for address in ("/leaderboard/?by=submission&device=cpu", "/tasks/scale/", "/", submission):
        assert "guest runner" in client.get(address).content.decode(), address
    for by in By:
        trusted = f"by={by.value}&device=cpu&trusted=1"
        assert client.get(f"/api/v1/leaderboard?fields=all&{trusted}").json()["trusted"] is True
        for address in (f"/leaderboard/?{trusted}", f"/api/v1/leaderboard?{trusted}&format=csv"):
            assert str(pair[0].pk) not in client.get(address).content.decode(), address
    address = "/api/v1/leaderboard?fields=all&by=submission&device=cpu&trusted=1"
    rows = client.get(address).json()["rows"]
    assert [row["evaluation_id"] for row in rows] == [str(pair[1].pk)]


def test_boards_filter_by_facts_of_audits(client: Client) -> None:
    first = ranked(agent="swift")
    facts = Facts(same_bits=True, graph=False)
    end_audit(first, audit=Audit(checks=(MEMCHECK,), required=(MEMCHECK.name,), facts=facts))
    slower = {"latency_ns": 2000.0, "speedups": {"best": 1.0, "eager": 1.0}}
    ranked(task_version=first.task_version, agent="slow", source="// slow\n", result=slower)

    def agents(parameters: str) -> list[str]:
        address = f"/api/v1/leaderboard?fields=all&by=submission&device=cpu&{parameters}"
        return [row["agent"] for row in client.get(address).json()["rows"]]

    assert agents("same_bits=1") == ["swift"]
    assert agents("graph=1") == []
    assert agents("same_bits=0") == ["swift", "slow"]
    text = client.get("/leaderboard/?device=cpu&same_bits=1").content.decode()
    assert 'name="same_bits" value="1" checked' in text
    text = client.get("/leaderboard/?device=cpu&graph=1").content.decode()
    assert "has been confirmed by an audit" in text

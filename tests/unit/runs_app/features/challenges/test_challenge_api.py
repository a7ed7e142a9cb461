"""Challenges as agents meet them: a token of an entry's own, its limits, and what it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from runs_app.features.challenges.models import Challenge
from runs_app.models import Evaluation
from tests import factories as make
from tests.unit.runs_app.features.challenges.invented import end, new_challenge, new_entry, tried

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

KERNEL = {"task": "scale", "source": make.SOURCE, "language": "cpp"}


@pytest.fixture
def challenge() -> Challenge:
    now = timezone.now()
    return new_challenge(starts_at=now, ends_at=now.replace(year=now.year + 1), now=now)


@pytest.fixture
def ada(challenge: Challenge) -> User:
    return make.make_user(username="ada")


def post(path: str, token: str, data: Any = None, **headers: str) -> Any:
    return Client().post(
        f"/api/v1/{path}",
        json.dumps(data or {}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}", **headers},
    )


def get(path: str, token: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client().get(f"/api/v1/{path}", headers=headers)


@pytest.fixture
def entered(ada: User) -> dict[str, Any]:
    token = make.make_token(ada)
    answer = post("challenges/autumn/entries", token, {"agent": "evolver", "setting": "cold"})
    assert answer.status_code == 201
    document: dict[str, Any] = answer.json()
    assert answer["Location"] == f"/api/v1/entries/{document['id']}"
    return document


def test_challenges_are_listed_and_shown_to_everybody(challenge: Challenge) -> None:
    (listed,) = get("challenges").json()
    assert (listed["name"], listed["title"], listed["open"]) == ("autumn", "Autumn", True)
    assert (listed["tasks"], listed["evaluations"]) == (["scale", "scale2"], 3)
    shown = get("challenges/autumn").json()
    assert (shown["contenders"], shown["entered"]) == ([], 0)
    assert get("challenges/winter").status_code == 404
    assert get("challenges?after=x").json()["field"] == "after"
    assert get("challenges?limit=0").status_code == 422


def test_what_it_submits_is_of_its_entry(entered: dict[str, Any]) -> None:
    token = entered["token"]
    for _ in range(2):  # and once alone
        created = post("submissions", token, KERNEL, **{"Idempotency-Key": "one"})
        assert created.status_code == 201
    number = created.json()["id"]
    assert get(f"submissions/{number}", token).json()["private"] is True
    assert get(f"submissions/{number}/status", token).json()["over"] is False
    assert get(f"submissions/{number}").status_code == 404
    assert [row["id"] for row in get("submissions", token).json()] == [number]
    end(Evaluation.objects.get(submission=number))
    state = get(f"entries/{entered['id']}", token).json()
    told = {"used": 1, "left": 2, "best_latency_ns": 1000.0, "verdict": ""}
    assert state["tasks"][0].items() >= told.items()


def test_refusals_name_the_field(entered: dict[str, Any]) -> None:
    token = entered["token"]
    refused = post("submissions", token, {**KERNEL, "mode": "ranked"})
    assert (refused.status_code, refused.json()["field"]) == (422, "mode")
    refused = post("submissions", token, {**KERNEL, "model": "?", "agent": "evolver"})
    assert (refused.status_code, refused.json()["field"]) == (422, "model")
    report = f"entries/{entered['id']}/report"
    for data, field in (
        ({"usd": -1}, "usd"),
        ({"tokens": "many"}, "tokens"),
        ({"transcript": 5}, "transcript"),
        ({"money": 5}, "money"),
    ):
        refused = post(report, token, data)
        assert (refused.status_code, refused.json()["field"]) == (422, field)
    for _ in range(3):
        assert post("submissions", token, KERNEL).status_code == 201
    refused = post("submissions", token, KERNEL)
    assert refused.status_code == 409
    assert refused.json()["reason"] == "this entry has used all 3 evaluations for scale"


def test_its_token_does_nothing_else(
    entered: dict[str, Any], challenge: Challenge, ada: User
) -> None:
    token = entered["token"]
    other = new_entry(challenge, ada, now=timezone.now())
    private = make.make_submission(user=ada, private=True, task_version=make.make_task_version())
    mine = tried(other, now=timezone.now()).submission
    for path in (
        "runs",
        "challenges/autumn/entries",
        f"entries/{other.pk}/finish",
        f"entries/{other.pk}/report",
        f"submissions/{mine.pk}/audit",
    ):
        refused = post(path, token, {})
        assert refused.status_code == 403, path
        assert "an entry's token can only" in refused.json()["reason"]
    for hidden in (private, mine):
        assert get(f"submissions/{hidden.pk}", token).status_code == 404
        assert get(f"submissions/{hidden.pk}/status", token).status_code == 404
    assert get("submissions", token).json() == []
    assert get("tasks/scale", token).status_code == 200


def test_its_token_takes_short_ids_and_cancels_its_own(entered: dict[str, Any], ada: User) -> None:
    token, hers = entered["token"], make.make_token(ada)
    number = post("submissions", token, KERNEL).json()["id"]
    for path in (f"submissions/{number[:8]}", f"submissions/{number[:13]}/status"):
        assert get(path, token).status_code == 200
        assert get(path).status_code == 404
    theirs = post("submissions", hers, KERNEL).json()["id"]
    for path in (theirs, theirs[:8]):
        assert post(f"submissions/{path}/cancel", token).status_code == 403
    assert post(f"submissions/{number[:8]}/cancel", token).json()["status"] == "CANCELLED"
    assert get(f"submissions/{theirs[:8]}/status", hers).json()["over"] is False


def test_an_admins_entry_does_not_see_hidden_workloads(challenge: Challenge) -> None:
    token = make.make_token(make.make_admin(username="root"))
    entered = post("challenges/autumn/entries", token, {}).json()
    number = post("submissions", entered["token"], KERNEL).json()["id"]
    end(Evaluation.objects.get(submission=number))
    assert make.HIDDEN_WORKLOAD in get(f"submissions/{number}", token).content.decode()
    own = get(f"submissions/{number}", entered["token"])
    assert own.status_code == 200
    assert make.HIDDEN_WORKLOAD not in own.content.decode()

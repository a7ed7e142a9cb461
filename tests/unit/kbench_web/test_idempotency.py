"""A request that is sent twice with one key is done once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from kbench_web.models import IdempotencyKey
from runs_app.features.challenges.services import enter
from runs_app.models import Submission
from tests import factories as make
from tests.unit.runs_app.features.challenges.invented import new_challenge

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def post(token: str, key: str, **changes: Any) -> Any:
    body = {"task": "scale", "source": make.SOURCE, "language": "cpp", **changes}
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    return Client().post(
        "/api/v1/submissions", json.dumps(body), content_type="application/json", headers=headers
    )


@pytest.fixture
def token() -> str:
    make.make_task_version()
    return make.make_token(make.make_user(username="ada"))


def test_the_second_answer_is_the_first_one(token: str) -> None:
    first, second = post(token, "a"), post(token, "a")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert first["Location"] == second["Location"]
    assert "Idempotent-Replay" not in first
    assert second["Idempotent-Replay"] == "true"
    assert Submission.objects.count() == 1
    assert post(token, "b").status_code == 201
    assert Submission.objects.count() == 2


def test_a_key_is_for_one_request_and_one_user(token: str) -> None:
    post(token, "a")
    other = post(token, "a", mode="test")
    assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")
    eve = make.make_token(make.make_user(username="eve"))
    assert post(eve, "a").status_code == 201
    assert Submission.objects.count() == 2


def test_a_key_is_for_one_token(token: str) -> None:
    """An agent in a challenge gets no answer that was its owner's."""
    user = User.objects.get(username="ada")
    now = timezone.now()
    dates = {"starts_at": now, "ends_at": now + timedelta(days=1), "now": now}
    challenge = new_challenge(name="scale", tasks=("scale",), **dates)
    entry, of_entry = enter(challenge=challenge, user=user, agent="rival", now=now)
    own = post(token, "a", private=True).json()["id"]
    made = post(of_entry, "a", private=True)
    assert made.status_code == 201
    assert "Idempotent-Replay" not in made
    assert Submission.objects.get(attempt__entry=entry).pk != UUID(own)
    assert post(of_entry, "a", private=True)["Idempotent-Replay"] == "true"
    assert post(make.make_token(user), "a").status_code == 201


def test_a_key_that_cannot_be_kept_and_what_is_refused_leaves_nothing(token: str) -> None:
    for key in ("", "a b", "é", "x" * 101):
        answer = post(token, key)
        assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")
    reader = make.make_token(make.make_user(username="eve"), scopes=["read"])
    assert [post(wrong, "a").status_code for wrong in ("kb_wrong", reader)] == [401, 403]
    assert post(token, "a", mode="turbo").status_code == 422
    assert post(token, "a", source="x" * (9 << 20)).status_code == 413
    assert not Submission.objects.exists()
    assert not IdempotencyKey.objects.exists()
    assert post(token, "a").status_code == 201  # it may be tried again
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    assert post(token, "a").status_code == 201  # forgotten after a day
    assert Submission.objects.count() == 2


def test_what_fails_in_the_middle_leaves_neither(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr("runs_app.submitting.api.quota_of", fail)
    with pytest.raises(RuntimeError):
        post(token, "a")
    assert not Submission.objects.exists()
    assert not IdempotencyKey.objects.exists()

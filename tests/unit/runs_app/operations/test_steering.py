"""How runners that admins steer are shown, and what can be asked of them next."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from runs_app.messaging import queues
from runs_app.models import Runner
from runs_app.operations.emptying import CONSEQUENCES, Part
from runs_app.queue.runners import runner_list
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client, monkeypatch: pytest.MonkeyPatch) -> User:
    """An admin who is signed in; runners hear nothing."""
    monkeypatch.setattr(queues, "steer", lambda runner: True)
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def runner(wanted: str, state: str) -> Runner:
    reason = "" if wanted == "work" else "hot"
    said = "by an admin: hot" if state == "draining" and wanted != "work" else ""
    return make.make_runner(
        wanted=wanted, wanted_reason=reason, state=state, reason=said, seen_at=timezone.now()
    )


@pytest.mark.parametrize(
    ("wanted", "state", "shown", "summary"),
    [
        ("work", "ready", "ready", "ready"),
        ("drain", "ready", "ready", "ready"),
        ("drain", "draining", "draining", "draining by an admin: hot"),
        ("disable", "draining", "disabled", "disabled by an admin: hot"),
        ("disable", "unfit", "unfit", "unfit"),
    ],
)
def test_a_disabled_runner_is_called_so(wanted: str, state: str, shown: str, summary: str) -> None:
    runner(wanted, state)
    [status] = runner_list(timezone.now())
    assert (status.state, status.summary) == (shown, summary)


def test_one_that_drains_can_be_disabled_at_once(client: Client, admin: User) -> None:
    drains = runner("drain", "draining")
    text = client.get("/operate/").content.decode()
    assert "Work again" in text
    assert f"Disable {drains.name} now" in text
    assert "by an admin: hot" in text
    assert "wanted: " not in text
    told = {"wanted": "disable", "reason": "hot"}
    assert client.post(f"/operate/runners/{drains.pk}/", told).status_code == 302
    drains.refresh_from_db()
    assert (drains.wanted, drains.wanted_reason) == ("disable", "hot")
    text = client.get("/operate/").content.decode()
    assert ">Disabled</span>" in text
    assert "Draining" not in text
    assert ' now"' not in text


def test_what_is_told_to_a_runner_is_who_holds_it_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[object, ...]] = []

    class Connection:
        def hset(self, *words: object) -> None:
            said.append(words)

    monkeypatch.setattr(queues, "connection", Connection)
    held = runner("disable", "ready")
    assert queues.steer(held)
    assert said == [(queues.STEERING, held.name, "by an admin: hot")]


def test_emptying_says_that_candidates_of_runs_come_again() -> None:
    assert "measured again" in CONSEQUENCES[Part.RUNS]
    assert "counts as an evaluation again" in CONSEQUENCES[Part.RUNS]

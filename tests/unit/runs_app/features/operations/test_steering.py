"""How runners that admins steer are shown, and what can be asked of them next."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from gpu_runner.data import codec, mailbox
from gpu_runner.data.order import Word
from runs_app.core.messaging import orders
from runs_app.core.queue.runners import runner_list
from runs_app.models import Runner
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client, monkeypatch: pytest.MonkeyPatch) -> User:
    """An admin who is signed in; runners hear nothing."""
    monkeypatch.setattr(orders, "tell", lambda runner: True)
    user = make.make_admin(username="judge")
    client.force_login(user)
    return user


def runner(wanted: str, state: str) -> Runner:
    reason = "" if wanted == "work" else "hot"
    said = "by an admin: hot" if state == "draining" and wanted != "work" else ""
    return make.make_runner(
        wanted=wanted, wanted_reason=reason, state=state, reason=said, seen_at=timezone.now()
    )


def test_a_disabled_runner_is_called_so() -> None:
    for wanted, state, shown, summary in (
        ("work", "ready", "ready", "ready"),
        ("drain", "ready", "ready", "ready"),
        ("drain", "draining", "draining", "draining by an admin: hot"),
        ("disable", "draining", "disabled", "disabled by an admin: hot"),
        ("disable", "unfit", "unfit", "unfit"),
    ):
        one = runner(wanted, state)
        [status] = runner_list(timezone.now())
        assert (status.state, status.summary) == (shown, summary)
        one.delete()


def test_one_that_drains_can_be_disabled_at_once(client: Client, admin: User) -> None:
    drains = runner("drain", "draining")
    text = client.get("/operate/").content.decode()
    assert "Resume" in text
    assert f"Disable {drains.name} now" in text
    assert "by an admin: hot" in text
    told = {"wanted": "disable", "reason": "hot"}
    assert client.post(f"/operate/runners/{drains.pk}/", told).status_code == 302
    drains.refresh_from_db()
    assert (drains.wanted, drains.wanted_reason) == ("disable", "hot")
    text = client.get("/operate/").content.decode()
    assert ">Disabled</span>" in text
    assert "Draining" not in text


def test_what_is_told_to_a_runner_is_who_holds_it_and_why_and_what_it_has_lost(
    settings: Any, redis_url: str
) -> None:
    settings.RUNNERS_REDIS_URL = redis_url
    held = runner("disable", "ready")
    mine, lost = make.make_evaluation(), make.make_evaluation(source=f"{make.SOURCE}// lost")
    make.hand_over(mine, held.own_name)
    held.current = [f"evaluation-{mine.pk}-1", f"evaluation-{lost.pk}-1"]
    assert orders.tell(held)
    key = mailbox.word_key(held.token.mailbox, held.own_name)
    word = codec.decode(Word, json.loads(orders.connection().get(key)))
    assert word == Word(hold="by an admin: hot", dropped=(f"evaluation-{lost.pk}-1",))

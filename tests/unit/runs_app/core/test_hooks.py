"""The hooks by which features join in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.dispatch import Signal
from django.test import Client

from runs_app.core import hooks
from runs_app.core.work import lifecycle
from runs_app.management.commands import ingest_events
from tasks_app.people import Viewer
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


@contextmanager
def heard(signal: Signal) -> Iterator[list[dict[str, Any]]]:
    """What it tells meanwhile."""
    told: list[dict[str, Any]] = []

    def hear(sender: Any, **about: Any) -> None:
        told.append(about)

    signal.connect(hear)
    try:
        yield told
    finally:
        signal.disconnect(hear)


def test_ends_changed_places_and_each_round_are_told() -> None:
    evaluation = make.make_evaluation()
    with heard(hooks.evaluation_ended) as told:
        lifecycle.cancel(evaluation, reason="because", now=make.NOW)
    assert [about["evaluation"] for about in told] == [evaluation]
    with heard(hooks.place_changed) as told:
        evaluation = make.make_finished_evaluation(mode="ranked")
        make.make_finished_evaluation(mode="quick")
    assert [(about["before"], about["after"]) for about in told] == [(None, evaluation)]
    with heard(hooks.tick) as told:
        ingest_events.Command()._reconcile(())
    assert [isinstance(about["now"], datetime) for about in told] == [True]


class Guest(hooks.Bearer):
    reach = "this is a guest's token: it reads, no more"

    def refusal(self, now: datetime) -> str:
        return ""

    def viewer(self, path: str, *, reading: bool) -> Viewer | None:
        return AnonymousUser() if reading else None


def test_a_feature_knows_whose_a_token_is(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest("guest 1", 1, make.make_user(username="ada"), ("read", "submit"))
    monkeypatch.setattr(hooks, "_finders", [])
    hooks.finds_bearer(lambda text, user: guest if text == "guest" else None)
    headers = {"Authorization": "Bearer guest"}
    assert client.get("/api/v1/site", headers=headers).json()["user"] == "ada"
    refused = client.post("/api/v1/submissions", {}, "application/json", headers=headers)
    assert (refused.status_code, refused.json()["reason"]) == (403, guest.reach)
    unknown = client.get("/api/v1/site", headers={"Authorization": "Bearer nobody"})
    assert unknown.status_code == 401

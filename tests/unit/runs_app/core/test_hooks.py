"""The hooks by which features join in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import call_command
from django.template import Context, Template
from django.test import Client

from runs_app.core import hooks
from runs_app.core.work import lifecycle
from runs_app.models import Evaluation
from tasks_app.people import Viewer
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def test_an_evaluation_that_ends_is_told() -> None:
    ended: list[Evaluation] = []

    def hear(sender: Any, evaluation: Evaluation, **_: Any) -> None:
        ended.append(evaluation)

    evaluation = make.make_evaluation()
    hooks.evaluation_ended.connect(hear)
    try:
        lifecycle.cancel(evaluation, reason="because", now=make.NOW)
    finally:
        hooks.evaluation_ended.disconnect(hear)
    assert ended == [evaluation]


def test_what_is_told_has_the_score_that_entries_of_one_source_share() -> None:
    told: list[float | None] = []

    def hear(sender: Any, evaluation: Evaluation, **_: Any) -> None:
        told.append(evaluation.score)

    hooks.evaluation_ended.connect(hear)
    try:
        for latency_ns in (1000.0, 250.0):
            entered = {"mode": "ranked", "source": make.SOURCE}
            last = make.make_finished_evaluation(**entered, result={"latency_ns": latency_ns})
    finally:
        hooks.evaluation_ended.disconnect(hear)
    assert told == [1.5, last.score]
    assert last.score == pytest.approx(3.0)


def test_a_place_that_changed_is_told_with_who_led_before() -> None:
    told: list[tuple[Evaluation | None, Evaluation | None]] = []

    def hear(
        sender: Any, before: Evaluation | None, after: Evaluation | None, now: datetime, **_: Any
    ) -> None:
        told.append((before, after))

    hooks.place_changed.connect(hear)
    try:
        evaluation = make.make_finished_evaluation(mode="ranked")
        make.make_finished_evaluation(mode="quick")
    finally:
        hooks.place_changed.disconnect(hear)
    assert told == [(None, evaluation)]


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """What the slot of a run's page was told; two features fill it, and a third does not."""
    told: list[Mapping[str, Any]] = []

    def fill(context: Context, **about: Any) -> hooks.Filling:
        told.append({**about, "user": context["user"]})
        return hooks.Filling("parts/command.html", {"text": f"<{about['run']}>"})

    def leave(context: Context, **about: Any) -> None:
        return None

    monkeypatch.setitem(hooks._fillers, hooks.Slot.RUN, [])
    for filler in (fill, leave, fill):
        hooks.fills(hooks.Slot.RUN)(filler)
    return told


def test_features_fill_a_slot_with_templates(filled: list[Mapping[str, Any]]) -> None:
    page = Template('{% load slots %}{% slot "run" run="r1" %}')
    text = page.render(Context({"user": "ada"}))
    assert text.count("&lt;r1&gt;") == 2
    assert filled == [{"run": "r1", "user": "ada"}] * 2


def test_a_slot_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        Template('{% load slots %}{% slot "nowhere" %}').render(Context())


def test_a_tick_comes_with_each_round_that_looks_after_the_site() -> None:
    moments: list[datetime] = []

    def hear(sender: Any, now: datetime, **_: Any) -> None:
        moments.append(now)

    hooks.tick.connect(hear)
    try:
        call_command("reconcile")
    finally:
        hooks.tick.disconnect(hear)
    assert len(moments) == 1


class Guest(hooks.Bearer):
    reach = "this is a guest's token: it reads, no more"

    def refusal(self, scope: str, now: datetime) -> str:
        return ""

    def viewer(self, path: str, *, reading: bool) -> Viewer | None:
        return AnonymousUser() if reading else None


def test_a_feature_says_whom_a_token_belongs_to(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = Guest("guest 1", 1, make.make_user(username="ada"), ("read",))
    monkeypatch.setattr(hooks, "_finders", [])
    hooks.finds_bearer(lambda text: guest if text == "guest" else None)
    headers = {"Authorization": "Bearer guest"}
    assert client.get("/api/v1/site", headers=headers).json()["user"] == "ada"
    refused = client.post("/api/v1/submissions", {}, "application/json", headers=headers)
    assert (refused.status_code, refused.json()["reason"]) == (401, guest.reach)
    unknown = client.get("/api/v1/site", headers={"Authorization": "Bearer nobody"})
    assert unknown.status_code == 401

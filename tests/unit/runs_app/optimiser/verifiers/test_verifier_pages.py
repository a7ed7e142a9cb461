"""Votes against hardware, and the page that shows them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs_app.models import LanguageModel, LanguageModelCall, Run, VerifierPrompt
from runs_app.optimiser.evolve.judging import Confusion
from runs_app.optimiser.verifiers.calibration import verification
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


@pytest.fixture
def judge() -> LanguageModel:
    return LanguageModel.objects.create(name="judge", created_at=make.NOW)


def vote(run: Run, judge: LanguageModel, verdict: str, **votes: bool) -> None:
    """A candidate with votes and the calls that gave them; no verdict means dropped."""
    candidate = make.make_candidate(
        run, votes=votes, verdict=verdict, state="measured" if verdict else "dropped"
    )
    for verifier in votes:
        asked = {"number": run.calls.count() + 1, "verifier": verifier, "about": candidate.number}
        LanguageModelCall.objects.create(
            run=run, role="verify", language_model=judge, messages=[], temperature=0, max_tokens=9,
            status="ANSWERED", tokens_in=90, tokens_out=10, cost_usd=0.01, created_at=make.NOW,
            ended_at=make.NOW, **asked,
        )  # fmt: skip


def judged_run(judge: LanguageModel, **overrides: Any) -> Run:
    run = make.make_run(**overrides)
    for verdict, compiles, safe in (
        ("CORRECT", True, True), ("CORRECT", True, False), ("COMPILE_ERROR", False, True),
        ("COMPILE_ERROR", True, True), ("RUNTIME_ERROR", True, False),
        ("SYSTEM_ERROR", False, False), ("", False, True),
    ):  # fmt: skip
        vote(run, judge, verdict, compile=compiles, memory=safe)
    return run


def test_votes_meet_what_hardware_said(judge: LanguageModel) -> None:
    found = verification(Run.objects.filter(pk=judged_run(judge).pk))
    compiling, memory = found.rows
    assert (compiling.verifier, compiling.model, compiling.votes) == ("compile", "judge", 7)
    assert compiling.confusion == Confusion(caught=1, missed=1, false_alarms=0, passed=3)
    assert memory.confusion == Confusion(caught=1, missed=0, false_alarms=1, passed=1)
    assert (compiling.avoided, memory.avoided) == (1, 0)
    assert (compiling.usd, compiling.tokens) == (pytest.approx(0.07), 700)
    assert (found.voted, found.checked, found.dropped) == (7, 5, 1)
    assert [b.count for b in found.bins] == [0, 0, 3, 0, 2]
    assert found.usd == pytest.approx(0.14)


def test_the_page_shows_tables(client: Client, judge: LanguageModel, settings: Any) -> None:
    run = judged_run(judge, private=True)  # which does not count for others
    assert 'id="calibration"' not in client.get("/verifiers/").content.decode()
    client.force_login(run.user)
    assert 'id="calibration"' in client.get("/verifiers/").content.decode()
    settings.DEVICE_USD_PER_HOUR = 2.0
    assert "Money saved" in client.get("/verifiers/").content.decode()


def test_one_prompt_of_a_verifier_is_in_use(client: Client) -> None:
    """Chosen in the admin; the shipped one counts again once none is."""
    client.force_login(make.make_admin())
    known = {"verifier": "compile", "text": "t", "created_at": make.NOW}
    first, second = (VerifierPrompt.objects.create(version=n, **known) for n in (2, 3))
    address = "/admin/runs_app/verifierprompt/"
    for prompt in (first, second):
        client.post(address, {"action": "use", "_selected_action": [prompt.pk]})
    assert list(VerifierPrompt.objects.filter(in_use=True)) == [second]
    client.post(address, {"action": "use_shipped", "_selected_action": [first.pk, second.pk]})
    assert not VerifierPrompt.objects.filter(in_use=True).exists()

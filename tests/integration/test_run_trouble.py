"""People and misfortune in mid-run: pauses, caps, endpoints and models that misbehave."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from runs_app.models import Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.services.control import (
    pause_run,
    resume_run,
    stop_run,
)
from tests.integration.conftest import Site
from tests.integration.run_scripts import NASTY
from tests.integration.run_stack import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

EVOLVE: dict[str, Any] = {"generations": 2, "proposals": 3, "recommendations": 0}


def kinds(run: Run) -> list[str]:
    return list(run.events.order_by("seq").values_list("kind", flat=True))


def test_a_pause_lets_nothing_new_begin_and_a_resume_goes_on(site: Site) -> None:
    site.speak("slowish")
    run = site.start("evolve", EVOLVE, concurrent_asks=1)
    wait_for(site.asked, "somebody is asked")
    pause_run(run=run, user=site.user, now=timezone.now())
    wait_for(lambda: not run.calls.filter(status="SENT").exists(), "the answer is stored")
    wait_for(lambda: not run.calls.filter(status="ANSWERED", told=False).exists(), "it is told")
    assert len(site.asked()) == 1
    resume_run(run=run, user=site.user, now=timezone.now())
    site.settled(run)
    assert run.calls.filter(status="ANSWERED").count() == len(site.asked()) == 6
    assert kinds(run).count("paused") == kinds(run).count("resumed") == 1
    site.replays(run)


def test_a_stop_ends_everything(site: Site) -> None:
    site.speak("slow")
    run = site.start("evolve", {"generations": 2, "proposals": 8}, concurrent_asks=8)
    wait_for(lambda: len(site.asked()) == 3, "all workers are at work")
    stop_run(run=run, user=site.user, now=timezone.now())
    site.settled(run, "STOPPED")
    assert len(site.asked()) == 3
    assert run.calls.filter(status="ANSWERED").count() == 3
    assert run.calls.filter(status="FAILED", error_kind="unsent").count() == 5
    assert not run.candidates.filter(state="measuring").exists()
    site.replays(run)


def test_an_endpoint_that_comes_back_in_time_is_waited_for(site: Site) -> None:
    endpoint = site.speak("good", listen=False)
    run = site.start("fsr", {"n": 1, "depth": 1})
    wait_for(lambda: run.calls.filter(status="SENT"), "a call is tried")
    endpoint.start()
    site.settled(run)
    call = run.calls.get()
    assert call.status == "ANSWERED"
    assert call.attempts >= 1
    assert len(site.asked()) == 1
    site.replays(run)


def test_everything_that_endpoints_and_models_do(site: Site) -> None:
    site.speak("nasty")
    run = site.start(
        "islands", {"islands": 1, "proposals": 14}, concurrent_asks=1, budget={"evaluations": 40}
    )
    site.until(run, "FINISHED")
    site.settled(run)
    assert run.reason == "all 14 proposals were made"
    answered = run.calls.filter(status="ANSWERED")
    problems = {problem for problem in answered.values_list("problem", flat=True) if problem}
    failed = {call.error_kind for call in run.calls.filter(status="FAILED")}
    assert failed == {"garbage", "empty", "refused"}
    assert run.calls.get(status="INTERRUPTED").response
    assert run.calls.get(number=1).attempts == 3  # 429 and 500 were tried again: nobody paid
    for found in ("the model refused", "has no code", "was cut off before its code was complete"):
        assert any(found in problem for problem in problems), problems
    dropped = [event.reason for event in site.events(run) if isinstance(event, events.Dropped)]
    assert any(reason.startswith("the same as #") for reason in dropped)
    assert run.candidates.filter(verdict="COMPILE_ERROR").count() == 1
    assert len(site.asked()) >= len(NASTY)
    assert run.best is not None
    site.replays(run)


def test_two_workers_at_one_run(site: Site) -> None:
    site.stack.start_second("runs")
    site.speak("good")
    run = site.start("evolve", {**EVOLVE, "proposals": 6}, concurrent_asks=6)
    site.settled(run)
    assert run.calls.count() == len(site.asked()) == 12
    assert run.evaluations == 13
    site.replays(run)

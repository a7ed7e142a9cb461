"""Runs whose workers, ingester or Redis are killed come to their end, and pay for nothing twice."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from gpu_runner.data.verdict import Mode
from runs_app.models import Evaluation, LanguageModelCall, Run
from runs_app.optimiser.evolve import events
from tests.integration.conftest import Site
from tests.integration.run_stack import CALL_WORKERS, kill_pid, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def calls(run: Run, status: str) -> int:
    return run.calls.filter(status=status).count()


def each_call_was_sent_once(site: Site, run: Run) -> None:
    sent = Counter(asked.call_id for asked in site.asked())
    assert sent == Counter(str(key) for key in run.calls.values_list("pk", flat=True))


def all_answers_are_used(run: Run) -> None:
    answered = run.calls.filter(status="ANSWERED", role="propose")
    drafted = set(run.candidates.exclude(call=None).values_list("call", flat=True))
    assert set(answered.values_list("pk", flat=True)) == drafted


def test_a_killed_worker_of_runs(site: Site) -> None:
    site.speak("slow")
    run = site.start("evolve", {"generations": 2, "proposals": 3, "recommendations": 0})
    wait_for(lambda: calls(run, "SENT"), "a call is sent")
    site.stack.kill("runs")
    wait_for(lambda: calls(run, "ANSWERED") == 3, "all are answered")
    site.stack.start("runs")
    site.settled(run)
    assert calls(run, "ANSWERED") == run.calls.count() == 6
    each_call_was_sent_once(site, run)
    all_answers_are_used(run)
    site.replays(run)


def test_killed_workers_of_calls(site: Site) -> None:
    site.speak("hanging")
    run = site.start("fsr", {"n": 2, "depth": 1}, concurrent_asks=2)
    wait_for(lambda: calls(run, "ANSWERED") == 1, "one of two is answered")
    site.stack.kill("calls")
    hung = run.calls.get(status="SENT")
    site.stack.start("calls")
    site.settled(run)
    hung.refresh_from_db()
    assert (hung.status, hung.told) == (LanguageModelCall.Status.INTERRUPTED, True)
    assert (hung.cost_usd, hung.estimated) == (hung.worst_usd, True)
    assert hung.tokens_in + hung.tokens_out == hung.worst_tokens
    each_call_was_sent_once(site, run)
    assert run.calls.count() == 3  # asked anew, as a call of its own
    assert run.usd == pytest.approx(sum(run.calls.values_list("cost_usd", flat=True)))
    all_answers_are_used(run)
    site.replays(run)


def test_a_call_outlives_the_worker_that_began_it(site: Site) -> None:
    site.speak("slowish")
    run = site.start("fsr", {"n": 1, "depth": 2})
    wait_for(site.asked, "a call has arrived")
    pool, workers = site.stack.pid("calls"), site.stack.children("calls")
    for pid in (pool, *workers):  # and not what a worker has forked for the call
        kill_pid(pid)
    wait_for(lambda: site.stack.missing(["calls"]), "the pool is dead")
    site.stack.start("calls")
    site.settled(run)
    each_call_was_sent_once(site, run)
    site.replays(run)


def test_a_killed_ingester(site: Site) -> None:
    site.speak("good")
    assert site.runner is not None
    site.runner.delay_s = 0.3
    run = site.start("evolve", {"generations": 2, "proposals": 2, "recommendations": 0})
    wait_for(site.asked, "somebody is asked")
    site.stack.kill("ingest")
    runner = site.runner
    runner.pause()  # once it has reported what it works at
    measured = len(runner.measured)
    assert Evaluation.objects.filter(submission__run=run, status="FINISHED").count() <= measured
    runner.resume()
    time.sleep(1)  # it asks, and nobody answers
    assert len(runner.measured) <= measured + 1  # what it was handed before
    site.stack.start("ingest")
    site.settled(run)
    evaluations = Counter(request.evaluation_id for request in runner.measured)
    assert set(evaluations.values()) == {1}
    site.replays(run)


def test_a_killed_redis(site: Site) -> None:
    site.speak("slowish")
    run = site.start("evolve", {"generations": 3, "proposals": 3, "recommendations": 0})
    wait_for(lambda: len(site.asked()) == CALL_WORKERS, "all are asked")
    site.stack.kill("redis")
    wait_for(lambda: calls(run, "ANSWERED") == 3, "answers are stored without Redis")
    site.stack.start("redis")
    site.stack.start(*site.stack.missing(["ingest", "runs", "calls"]))
    site.settled(run)
    assert calls(run, "ANSWERED") == run.calls.count() == 9
    each_call_was_sent_once(site, run)
    all_answers_are_used(run)
    site.replays(run)


def test_a_killed_worker_while_the_best_is_ranked(site: Site) -> None:
    site.speak("good")
    assert site.runner is not None
    runner = site.runner
    run = site.start("fsr", {"n": 2, "depth": 1}, ranks_best=True)
    wait_for(lambda: run.calls.filter(status="ANSWERED").count() == 2, "both are answered")
    runner.delay_s = 0.5

    def is_ranked() -> bool:
        return any(request.mode is Mode.RANKED for request in runner.measured)

    wait_for(is_ranked, "one is ranked")
    site.stack.kill("runs")
    site.stack.kill("ingest")
    site.stack.start("runs", "ingest")
    site.settled(run)
    chosen = [event for event in site.events(run) if isinstance(event, events.Chosen)]
    assert [(event.is_ranked, event.is_audited) for event in chosen] == [(True, True)]
    site.replays(run)

"""Calls of language models through the real client: sent once, stored, charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.models import LanguageModel, LanguageModelCall, Run
from runs_app.optimiser.llm import client
from runs_app.optimiser.llm.errors import CallError
from runs_app.optimiser.services.calls import answer_call, interrupt_call, try_language_model
from runs_app.optimiser.services.control import pause_run, resume_run, stop_run
from runs_app.optimiser.services.reconcile_runs import reconcile_runs
from runs_app.optimiser.services.replay import replay_run
from tests import factories as make
from tests.scripted_endpoint import EMPTY, GARBAGE, Answer, ScriptedEndpoint
from tests.unit.runs_app.optimiser.conftest import MODEL, Start, World

pytestmark = pytest.mark.django_db

Open = Callable[..., ScriptedEndpoint]


@pytest.fixture
def endpoint(model: LanguageModel) -> Iterator[Open]:
    """Opens an endpoint with a script, at which the language model is called."""
    opened: list[ScriptedEndpoint] = []

    def open_it(*script: Any, **options: Any) -> ScriptedEndpoint:
        """`script`: answers, or one function from a request to its answer."""
        said = script[0] if callable(script[0]) else list(script)
        server = ScriptedEndpoint(said, **options).__enter__()
        opened.append(server)
        LanguageModel.objects.filter(pk=model.pk).update(base_url=server.base_url)
        return server

    yield open_it
    for server in opened:
        server.__exit__(None, None, None)


class Clock:
    """A second goes by with every look."""

    def __init__(self) -> None:
        self.now = make.NOW

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def asked(start: Start, world: World, **overrides: Any) -> LanguageModelCall:
    """The only call of a new run, waiting."""
    run = start(parameters={"asks": 1}, **overrides)
    world.to_first_calls(run)
    return run.calls.get()


def send(call: LanguageModelCall) -> bool:
    sent = answer_call(call_id=call.pk, clock=Clock())
    call.refresh_from_db()
    return sent


def test_a_call_is_sent_once_at_the_starts_prices(
    start: Start, world: World, endpoint: Open
) -> None:
    server = endpoint(Answer("a kernel"))
    call = asked(start, world)
    LanguageModel.objects.filter(name=MODEL).update(price_in_usd=1000.0)
    world.advances.clear()
    assert [send(call) for _ in range(3)] == [True, False, False]
    assert (call.status, call.response, call.finish_reason) == ("ANSWERED", "a kernel", "stop")
    assert call.tokens_in > 0
    assert call.cost_usd == pytest.approx((call.tokens_in + 2 * call.tokens_out) / 1e6)
    assert call.served_by == "scripted-1"
    assert world.advances == [str(call.run_id)]
    (request,) = server.asked
    assert (request.body["seed"], request.body["max_tokens"]) == (call.seed, call.max_tokens)
    assert request.call_id == str(call.pk)


@pytest.mark.parametrize("status", ["PAUSED", "STOPPED"])
def test_a_held_run_sends_nothing(start: Start, world: World, endpoint: Open, status: str) -> None:
    server = endpoint(Answer("a kernel"))
    call = asked(start, world)
    assert call.run is not None
    act = pause_run if status == "PAUSED" else stop_run
    act(run=call.run, user=call.run.user, now=make.NOW)
    assert not send(call)
    assert server.asked == []
    assert call.status == ("WAITING" if status == "PAUSED" else "FAILED")


@pytest.mark.parametrize(("key", "words"), [("", "WRITER_KEY"), ("wrong-key-of-ours", "the key")])
def test_a_missing_or_wrong_key_pauses_the_run(
    start: Start, world: World, endpoint: Open, monkeypatch: Any, key: str, words: str
) -> None:
    server = endpoint(Answer("a kernel"), key="right")
    monkeypatch.setenv("WRITER_KEY", key)
    call = asked(start, world)
    LanguageModel.objects.filter(name=MODEL).update(key_variable="WRITER_KEY")
    assert send(call)
    assert (call.status, call.error_kind, call.cost_usd) == ("FAILED", "auth", 0.0)
    run = Run.objects.get(pk=call.run_id)
    world.advance(run)
    assert (run.status, words in run.reason, len(server.asked)) == ("PAUSED", True, bool(key))
    assert "wrong-key-of-ours" not in str([*run.calls.values(), *run.events.values()])


@pytest.mark.parametrize("answer", [EMPTY, GARBAGE])
def test_what_may_have_been_paid_is_charged(
    start: Start, world: World, endpoint: Open, answer: Answer
) -> None:
    endpoint(answer)
    call = asked(start, world)
    assert send(call)
    assert call.status in ("FAILED", "INTERRUPTED")
    assert call.error
    run = Run.objects.get(pk=call.run_id)
    world.advance(run)
    assert run.usd == pytest.approx(call.cost_usd)
    assert run.events.filter(kind="failed").exists()


def test_a_silent_call_is_charged_and_not_sent_again(start: Start, world: World) -> None:
    call = asked(start, world)
    heard = make.later(10)
    LanguageModelCall.objects.filter(pk=call.pk).update(
        status="SENT", sent_at=make.NOW, heard_at=heard, response="```cpp\nvoid", partial=True
    )
    ever = make.later(-1000)
    assert reconcile_runs(now=make.later(99), listening_since=ever) == 0
    assert reconcile_runs(now=make.later(101), listening_since=make.later(20)) == 0
    assert reconcile_runs(now=make.later(101), listening_since=ever) == 1
    call.refresh_from_db()
    assert (call.status, call.cost_usd) == ("INTERRUPTED", call.worst_usd)
    assert call.response == "```cpp\nvoid"
    assert call.tokens_in + call.tokens_out == call.worst_tokens
    assert not send(call)
    run = Run.objects.get(pk=call.run_id)
    world.advance(run, make.later(102))
    assert run.usd == pytest.approx(call.worst_usd)
    assert (run.status, run.reason) == ("FINISHED", "all is asked")


def taken_for_dead(call: LanguageModelCall) -> None:
    """What the reconciler does of a process that could not write for a while."""
    row = LanguageModelCall.objects.get(pk=call.pk)
    assert row.status == "SENT"
    assert interrupt_call(call=row, now=make.NOW)


@pytest.mark.parametrize("told", [False, True])
def test_an_answer_after_a_silence_counts_until_the_run_has_learnt_of_it(
    start: Start, world: World, endpoint: Open, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    endpoint(Answer("a kernel"))
    call = asked(start, world)
    run = Run.objects.get(pk=call.run_id)
    complete = client.complete

    def completed(*arguments: Any, **options: Any) -> Any:
        taken_for_dead(call)
        if told:
            world.advance(run)
        return complete(*arguments, **options)

    monkeypatch.setattr(client, "complete", completed)
    assert send(call) is not told
    world.advance(run)
    call.refresh_from_db()
    if told:
        assert (call.status, call.cost_usd) == ("INTERRUPTED", call.worst_usd)
    else:
        assert (call.status, call.response, call.error) == ("ANSWERED", "a kernel", "")
        assert 0 < call.cost_usd < call.worst_usd
    assert run.usd == pytest.approx(call.cost_usd)
    assert replay_run(run).differences == ()


def test_an_end_that_cost_nothing_replaces_the_charge_of_a_silence(
    start: Start, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = asked(start, world)

    def failed(*arguments: Any, **options: Any) -> Any:
        taken_for_dead(call)
        raise CallError("could not connect", "unavailable")

    monkeypatch.setattr(client, "complete", failed)
    assert send(call)
    assert (call.status, call.error_kind, call.cost_usd) == ("FAILED", "unavailable", 0.0)
    assert (call.tokens_in, call.tokens_out, call.estimated) == (0, 0, False)


def test_a_forgotten_call_is_queued_again(start: Start, world: World) -> None:
    call = asked(start, world)
    ever = make.later(-1000)
    assert reconcile_runs(now=make.later(60), listening_since=ever) == 0
    world.calls.clear()
    assert reconcile_runs(now=make.later(5), listening_since=ever) == 0
    assert reconcile_runs(now=make.later(60), listening_since=ever) == 1
    assert world.calls == [str(call.pk)]
    run = Run.objects.get(pk=call.run_id)
    pause_run(run=run, user=run.user, now=make.NOW)
    world.answer(run)
    world.advances.clear()
    reconcile_runs(now=make.later(120), listening_since=ever)
    assert world.advances == [str(run.pk)]  # a trigger that got lost


@pytest.mark.usefixtures("world")
def test_a_person_can_test_a_language_model(model: LanguageModel, endpoint: Open) -> None:
    server = endpoint(Answer("ready"), Answer(status=503), Answer("never asked for"))
    user = make.make_user()
    model.refresh_from_db()
    call = try_language_model(model=model, user=user, now=make.NOW)
    with pytest.raises(NotAllowed, match="under way"):
        try_language_model(model=model, user=user, now=make.NOW)
    assert send(call)
    assert (call.status, call.response, call.run) == ("ANSWERED", "ready", None)
    assert call.cost_usd > 0
    failed = try_language_model(model=model, user=user, now=make.NOW)
    send(failed)  # once: somebody waits to see what is wrong
    assert (failed.status, "503" in failed.error, len(server.asked)) == ("FAILED", True, 2)
    LanguageModel.objects.filter(pk=model.pk).update(base_url="")
    model.refresh_from_db()
    with pytest.raises(SubmissionError, match="no base URL"):
        try_language_model(model=model, user=user, now=make.NOW)


def test_a_busy_run_lets_another_go_first(start: Start, world: World, endpoint: Open) -> None:
    endpoint(lambda _: Answer("a kernel"))
    busy = start()
    world.to_first_calls(busy)
    other = start(user=busy.user, task_version=busy.task_version)
    world.to_first_calls(other)
    sent, waits, last = busy.calls.order_by("number")
    LanguageModelCall.objects.filter(pk=sent.pk).update(status="SENT", sent_at=make.NOW)
    assert send(waits)
    assert waits.status == "WAITING"
    statuses = other.calls.order_by("number").values_list("status", flat=True)
    assert list(statuses) == ["ANSWERED", "WAITING", "WAITING"]
    for job in other.calls.all():  # as many jobs as calls, so each call finds one
        answer_call(call_id=job.pk, clock=Clock())
    LanguageModelCall.objects.filter(pk=sent.pk).update(status="ANSWERED", ended_at=make.NOW)
    paused = other.calls.order_by("number")[:1].get()
    pause_run(run=busy, user=busy.user, now=make.NOW)
    assert not send(paused)  # a job without a call serves no paused run
    resume_run(run=busy, user=busy.user, now=make.NOW)
    assert send(last)
    assert not LanguageModelCall.objects.filter(status__in=("WAITING", "SENT")).exists()

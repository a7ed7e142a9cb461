"""Tuning through the real client against a real server, whose votes depend on the prompt."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from gpu_runner.data.verdict import Verdict
from runs_app.models import LanguageModel, LanguageModelCall, Submission, Tuning, VerifierPrompt
from runs_app.optimiser.evolve.verifiers import instructions
from runs_app.optimiser.verifiers import tuning as tuning_service
from runs_app.optimiser.verifiers.tuning import TuningRequest, prompt_in_use, tune
from tests import factories as make
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint
from tests.unit.queued import Jobs

pytestmark = pytest.mark.django_db(transaction=True)

BROKEN = "missing_semicolon"
RULE = "REJECT EVERY MISSING SEMICOLON"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
SMALL = {"generations": 2, "population": 2, "examples": 6, "held_out": 4}


def script(asked: Asked) -> Answer:
    """A judge that finds what its instructions tell it to look for, and an improver that learns."""
    if "You improve the instructions" in asked.prompt:
        assert BROKEN in asked.prompt
        rules = f"Read the kernel line by line. {RULE}. " * 8
        return Answer(f"It overlooks it.\n<instructions>\n{rules}\n</instructions>", usage=USAGE)
    candidate = asked.messages[-1]["content"]
    fails = RULE in asked.prompt and BROKEN in candidate
    return Answer(f"I read it.\nFINAL VERIFICATION ANSWER: {not fails}", usage=USAGE)


@pytest.fixture
def kernels(jobs: Jobs) -> None:
    """Six kernels of each of two tasks, half of which do not compile."""
    user = make.make_user()
    for task in ("scale", "shift"):
        version = make.make_task_version(name=task, title=task)
        for number in range(6):
            passes = number % 2 == 0
            source = f"{make.SOURCE}// {task} {number} {'' if passes else BROKEN}\n"
            verdict = Verdict.CORRECT if passes else Verdict.COMPILE_ERROR
            said = None if passes else {"reason": "expected ;"}
            fields = {"task_version": version, "source": source, "user": user}
            make.make_finished_evaluation(verdict, said, **fields)


@pytest.fixture
def model() -> LanguageModel:
    """Priced, so that a cap means something; the tests give it an address."""
    return make.make_judge()


def at(model: LanguageModel, endpoint: ScriptedEndpoint) -> None:
    LanguageModel.objects.filter(pk=model.pk).update(base_url=endpoint.base_url)


def request(**overrides: Any) -> TuningRequest:
    return TuningRequest(**{"verifier": "compile", "model": "judge", **SMALL, **overrides})


def run(wanted: TuningRequest) -> Tuning:
    tuning = tune(request=wanted, clock=lambda: make.NOW, report=lambda *_: None)
    tuning.refresh_from_db()
    return tuning


@pytest.mark.usefixtures("kernels")
def test_a_prompt_is_tuned_stored_and_used(model: LanguageModel, client: Client) -> None:
    out = io.StringIO()
    options = {**SMALL, "verifier": "compile", "model": "judge", "use": True}
    with ScriptedEndpoint(script) as endpoint:
        at(model, endpoint)
        call_command("tune_verifiers", stdout=out, **options)
        asked = endpoint.asked
    tuning = Tuning.objects.get()
    found = [[each[part]["right"] for part in ("train", "held_out")] for each in tuning.generations]
    assert found == [[3, 2], [6, 4]]
    assert tuning.ended_at is not None
    assert "no mistake" in tuning.reason

    calls = tuning.calls.all()
    assert len(asked) == calls.count()
    assert {c.status for c in calls} == {"ANSWERED"}
    assert {c.role for c in calls} == {"verify", "tune"}
    assert tuning.usd == pytest.approx(len(asked) * (100 * 10 + 10 * 100) / 1e6)
    assert tuning.tokens == len(asked) * 110
    assert tuning.usd == pytest.approx(sum(each["usd"] for each in tuning.generations))
    _check_prompt(tuning, out.getvalue(), client)


def _check_prompt(tuning: Tuning, said: str, client: Client) -> None:
    prompt = VerifierPrompt.objects.get()
    assert prompt.in_use
    assert prompt.tuning == tuning
    assert RULE in prompt.text
    assert prompt_in_use("compile") == prompt.text
    assert prompt_in_use("memory") == instructions("memory")
    assert "training 6/6, held out 4/4" in said
    page = client.get(f"/verifiers/tunings/{tuning.pk}/").content.decode()
    assert "4 of 4" in page
    assert RULE in page


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("cap", [0.0, 0.5])
def test_the_cap_holds_to_the_call(model: LanguageModel, cap: float) -> None:
    usage = {"prompt_tokens": 3000, "completion_tokens": 900}
    with ScriptedEndpoint(lambda asked: Answer(script(asked).text, usage=usage)) as endpoint:
        at(model, endpoint)
        tuning = run(request(max_usd=cap))
        asked = len(endpoint.asked)
    assert tuning.usd <= cap
    assert "cap" in tuning.reason or "budget" in tuning.reason
    assert asked == tuning.calls.count()
    assert (asked == 0) is (cap == 0.0)
    LanguageModel.objects.update(price_out_usd=10_000.0)
    out = io.StringIO()
    call_command("tune_verifiers", stdout=out, verifier="compile", model="judge", **SMALL)
    assert "cap of $5" in out.getvalue()  # without a word there is one
    assert LanguageModelCall.objects.count() == asked


@pytest.mark.usefixtures("kernels")
def test_a_failing_endpoint_ends_it(model: LanguageModel) -> None:
    with ScriptedEndpoint([Answer(status=401, message="wrong key")]) as endpoint:
        at(model, endpoint)
        tuning = run(request())
        assert len(endpoint.asked) <= tuning_service.FAILURES_IN_A_ROW + 4
    assert "calls in a row failed" in tuning.reason
    assert all(each["best"] is None for each in tuning.generations)
    assert not VerifierPrompt.objects.exists()


@pytest.mark.usefixtures("kernels")
def test_a_second_ctrl_c_gives_up(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls under way are charged at their worst; none is left for a worker to send."""
    before = set(threading.enumerate())

    with ScriptedEndpoint(lambda asked: Answer("True", delay_s=60.0)) as endpoint:
        at(model, endpoint)

        def interrupted(*arguments: Any, **options: Any) -> Any:
            endpoint.wait_for(4)
            raise KeyboardInterrupt

        monkeypatch.setattr(tuning_service, "wait", interrupted)
        tuning = run(request())
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join(60)
    assert tuning.reason == tuning_service.BY_HAND
    assert [c.status for c in tuning.calls.all()] == ["INTERRUPTED"] * 4
    assert tuning.usd == pytest.approx(sum(c.worst_usd for c in tuning.calls.all()))
    assert tuning.usd > 0


@pytest.mark.usefixtures("kernels")
def test_private_kernels_are_not_shown_to_a_model(model: LanguageModel) -> None:
    Submission.objects.update(private=True)
    with pytest.raises(CommandError, match="0 passing and 0 failing kernels"):
        call_command("tune_verifiers", verifier="compile", model="judge")
    assert not Tuning.objects.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "nobody"}, "can't be called; callable language models: judge"),
        ({"generations": -1}, "generations: must be 0 or more"),
        ({"max_usd": -1.0}, "max-usd: must be 0 or more"),
        ({"examples": 5}, "examples: must be an even number"),
        ({}, "15 passing and 15 failing"),
    ],
)
def test_what_cannot_be_tuned_is_said(
    model: LanguageModel, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("tune_verifiers", **{"verifier": "compile", "model": "judge", **options})
    assert not LanguageModelCall.objects.exists()

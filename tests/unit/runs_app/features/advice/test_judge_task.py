"""A language model's advice on a task, through the real client against a real server."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client

from runs_app.core.hooks import tick
from runs_app.features.advice import services as task_judging
from runs_app.features.advice.models import TaskJudgement
from runs_app.models import LanguageModel, LanguageModelCall
from runs_app.optimiser.services.reconcile_runs import reconcile_runs
from tasks_app.models import AuditEntry, Task
from tasks_app.publishing.services import admit
from tests import factories as make
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint

pytestmark = pytest.mark.django_db(transaction=True)

USAGE = {"prompt_tokens": 400, "completion_tokens": 50}
FLAGGED = {"flagged": True, "reason": "Line 2 adds <b>zero</b>."}
SOUND = {"flagged": False, "reason": "One call of the library."}


def said(redundancy: Any = FLAGGED, inefficiency: Any = SOUND, **more: Any) -> str:
    verdicts = {"redundancy": redundancy, "inefficiency": inefficiency} | more
    return f"I read it.\n\n```json\n{json.dumps(verdicts)}\n```\n"


@pytest.fixture
def model() -> LanguageModel:
    """Priced; the tests give it an address."""
    return make.make_judge()


def judge(endpoint: ScriptedEndpoint, task: str = "scale", **options: Any) -> str:
    LanguageModel.objects.update(base_url=endpoint.base_url)
    out = io.StringIO()
    call_command("judge_task", task, stdout=out, **{"model": "judge", **options})
    return out.getvalue()


@pytest.mark.usefixtures("model")
def test_verdicts_are_stored_with_reasons_model_and_cost_and_shown(client: Client) -> None:
    make.make_task_version()
    with ScriptedEndpoint([Answer(said(), usage=USAGE)]) as endpoint:
        out = judge(endpoint)
    assert "redundancy: FLAGGED" in out
    judgement = TaskJudgement.objects.get()
    assert [v["criterion"] for v in judgement.verdicts] == ["redundancy", "inefficiency"]
    assert [v["flagged"] for v in judgement.verdicts] == [True, False]
    assert judgement.call.cost_usd == pytest.approx((400 * 10 + 50 * 100) / 1e6)
    assert (judgement.call.role, judgement.call.status) == ("judge", "ANSWERED")
    entry = AuditEntry.objects.get(kind=AuditEntry.Kind.JUDGED)
    assert (entry.actor, entry.version) == (None, judgement.version)
    assert entry.details == {"language model": "judge"}
    assert Task.objects.get().state == "published", "advice gates nothing"
    page = client.get("/tasks/scale/soundness/").content.decode()
    assert "Line 2 adds &lt;b&gt;zero" in page
    assert "$0.0090" in page
    [row] = client.get("/api/v1/tasks/scale/judgements").json()
    assert row["verdicts"][0] == {"criterion": "redundancy", **FLAGGED}
    assert (row["model"], row["problem"], row["tokens_in"]) == ("judge", "", 400)
    assert client.get("/api/v1/tasks/other/judgements").status_code == 404
    with pytest.raises(IntegrityError):  # a verdict beside a problem
        TaskJudgement.objects.update(problem="unread")


@pytest.mark.usefixtures("model")
def test_the_model_sees_public_documents_alone() -> None:
    reference = "def forward_fn(x):\n    return x * 2\n"
    files = {**make.make_task().files, "reference.py": reference}
    make.make_task_version(description="Twice the input.", files=files)

    def script(asked: Asked) -> Answer:
        assert "Twice the input." in asked.prompt
        assert "return x * 2" in asked.prompt
        assert "n256: N=256" in asked.prompt
        for secret in (make.HIDDEN_WORKLOAD, "1777", make.SOURCE):
            assert secret not in asked.prompt
        return Answer(said(), usage=USAGE)

    with ScriptedEndpoint(script) as endpoint:
        judge(endpoint)
        assert endpoint.asked[0].temperature == 0.0


@pytest.mark.usefixtures("model")
def test_a_verdict_publishes_nothing_that_nobody_has_proven() -> None:
    unproven = make.make_task(name="shift")
    assert admit(data=unproven, now=make.NOW).refusal
    with ScriptedEndpoint([Answer(said(redundancy=SOUND), usage=USAGE)]) as endpoint:
        judge(endpoint, "shift")
    assert admit(data=unproven, now=make.NOW).refusal
    assert Task.objects.get(slug="shift").state == "review"


@pytest.mark.usefixtures("model")
def test_an_answer_without_a_verdict_is_kept_as_an_error(client: Client) -> None:
    make.make_task_version()
    cases: list[tuple[str | Answer, str]] = [
        ("It is fine.", "JSON object of verdicts"),
        ("```json\n[1]\n```", "is not an object"),
        (said(inefficiency=None), "no verdict on inefficiency"),
        (said(redundancy={"flagged": "no", "reason": "x"}), "redundancy.flagged must be"),
        (said(redundancy={"flagged": False, "reason": " ... "}), "redundancy.reason is missing"),
        (said(fast=SOUND), "unknown criterion 'fast'"),
        (Answer(said(), finish_reason="length", usage=USAGE), "cut off"),
        (Answer(status=401, message="wrong key"), "wrong key"),
        (Answer("", refusal="I must decline"), "refused"),
    ]
    for answer, words in cases:
        TaskJudgement.objects.all().delete()
        script = [answer if isinstance(answer, Answer) else Answer(answer, usage=USAGE)]
        with ScriptedEndpoint(script) as endpoint, pytest.raises(CommandError, match="no verdict"):
            judge(endpoint)
        judgement = TaskJudgement.objects.get()
        assert judgement.verdicts == []
        assert words in judgement.problem
        [row] = client.get("/api/v1/tasks/scale/judgements").json()
        assert (row["verdicts"], row["problem"]) == ([], judgement.problem)
    assert "No verdict" in client.get("/tasks/scale/soundness/").content.decode()


def test_what_cannot_be_asked_is_said_and_nothing_stored(model: LanguageModel) -> None:
    make.make_task_version()
    with ScriptedEndpoint([Answer(said())]) as endpoint:
        for options, words in (
            ({"model": "nobody"}, "can't be called; callable language models: judge"),
            ({"max_usd": 0.0}, "leaves no room"),
            ({"max_usd": -1.0}, "must be 0 or more"),
        ):
            with pytest.raises(CommandError, match=words):
                judge(endpoint, **options)
        with pytest.raises(CommandError, match="there is no task 'other'"):
            call_command("judge_task", "other", model="judge")
        assert endpoint.asked == []
    assert not LanguageModelCall.objects.exists()


@pytest.mark.usefixtures("model")
def test_a_command_that_was_killed_while_it_waited_leaves_a_reason(
    client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """The site finds the silent call by itself, and says so on the page and in the API."""
    make.make_task_version()

    def killed(*, call_id: Any, **_: Any) -> bool:
        LanguageModelCall.objects.filter(pk=call_id).update(status="SENT", heard_at=make.NOW)
        raise SystemExit(137)

    monkeypatch.setattr(task_judging, "answer_call", killed)
    with pytest.raises(SystemExit):
        call_command("judge_task", "scale", model="judge")

    def shown() -> tuple[str, str]:
        [row] = client.get("/api/v1/tasks/scale/judgements").json()
        return row["problem"], client.get("/tasks/scale/soundness/").content.decode()

    problem, page = shown()
    assert problem == ""
    assert "under way" in page
    ended = make.later(settings.CALL_SILENCE_S + 1)
    reconcile_runs(now=ended, listening_since=make.NOW)
    assert TaskJudgement.objects.get().call.status == "INTERRUPTED"
    tick.send(sender=None, now=ended + timedelta(seconds=11))
    problem, page = shown()
    assert problem == "the process that waited for the answer was silent for 90 s"
    assert problem in page
    assert "under way" not in page


@pytest.mark.usefixtures("model")
def test_ctrl_c_leaves_no_call_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may have been paid is charged at its worst, and stands there as an error."""
    make.make_task_version()

    def interrupted(*, call_id: Any, **_: Any) -> bool:
        LanguageModelCall.objects.filter(pk=call_id).update(status="SENT")
        raise KeyboardInterrupt

    monkeypatch.setattr(task_judging, "answer_call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call_command("judge_task", "scale", model="judge")
    judgement = TaskJudgement.objects.get()
    assert judgement.call.status == "INTERRUPTED"
    assert judgement.call.cost_usd > 0
    assert judgement.problem

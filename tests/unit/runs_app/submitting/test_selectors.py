"""What people see: who may see it, why it waits, how much is left."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from gpu_runner.data.evaluation import Mismatch
from gpu_runner.data.event import EventKind
from gpu_runner.data.queue import Urgency
from gpu_runner.data.symptom import Finding, Symptom
from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Language, Verdict
from runs_app.core.errors import SubmissionError
from runs_app.core.messaging.broadcast import events
from runs_app.core.queue.selectors import queue_overview, waiting_reason
from runs_app.core.runners.handing import hand_over
from runs_app.core.work.access import (
    author_names,
    find_evaluation,
    find_submission,
    may_see,
    public_reason,
    shown_result,
)
from runs_app.models import Agent, Device, Evaluation, Runner
from runs_app.submitting.shipped import submit_shipped_kernels
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def reason(evaluation: Evaluation, seconds: float = 0) -> str:
    return waiting_reason(evaluation, make.later(seconds))


def test_a_private_submission_is_its_authors_and_the_admins() -> None:
    evaluation = make.make_evaluation(private=True)
    submission = evaluation.submission
    for user, sees in (
        (AnonymousUser(), False),
        (make.make_user(), False),
        (make.make_user(is_staff=True, is_active=False), False),
        (submission.author, True),
        (make.make_admin(), True),
    ):
        assert may_see(user, submission) is sees
        assert (find_submission(submission.pk, user) is not None) is sees
        assert (find_evaluation(evaluation.pk, user) is not None) is sees
        entries = queue_overview(user, make.NOW, 9)[0].waiting
        assert (entries[0].evaluation is not None) is sees


def test_only_own_agents_are_offered_and_private_language_models_to_their_authors() -> None:
    fields = {"agent": "secret-robot", "language_model": "secret-model", "private": True}
    author = make.make_submission(**fields).author
    make.make_submission(agent="robot", language_model="model")
    make.make_submission(agent="robot", language_model="model")
    assert author_names(AnonymousUser()) == ([], ["model"])
    assert author_names(make.make_user()) == ([], ["model"])
    own = (["secret-robot"], ["model", "secret-model"])
    assert author_names(author) == own


def test_waiting_reason_with_runners_that_take_no_work() -> None:
    evaluation = make.make_evaluation()
    assert "no runner for CPU has ever reported" in reason(evaluation)
    runner = make.make_runner(name="host-1")
    assert reason(evaluation, 600).endswith("test.host-1 was last heard from 10 min ago")
    Runner.objects.filter(pk=runner.pk).update(state=Runner.State.DRAINING)
    make.make_runner(name="host-2", state=Runner.State.UNFIT, reason="no jail")
    text = reason(evaluation)
    assert text.endswith("test.host-1 is draining; test.host-2 is unfit (no jail)")


def test_waiting_reason_in_a_queue() -> None:
    runner = make.make_runner(name="host-1")
    first, second = make.make_evaluation(), make.make_evaluation(now=make.later(1))
    assert reason(first) == "next in the queue; a runner is free and will take it within seconds"
    runner.current = ["something"]
    runner.save()
    assert reason(second) == "number 2 in the queue; test.host-1 is busy with other jobs"
    make.start(first, runner="host-1")
    assert reason(first) == ""
    assert reason(second) == "next in the queue; test.host-1 is busy with other jobs"


def test_hidden_workloads_are_for_admins_only() -> None:
    mismatch = Mismatch(
        workload=make.HIDDEN_WORKLOAD, output="out", reason="off", index=(3,), expected=1777.0,
        findings=(Finding(symptom=Symptom.TAIL, text="only the last 1777 elements are wrong"),),
    )  # fmt: skip
    evaluation = make.make_finished_evaluation(
        Verdict.WRONG_RESULT,
        {
            "reason": f"wrong in {make.HIDDEN_WORKLOAD}: 1777 is off",
            "mismatch": mismatch,
            "environment": {"baseline_errors": {f"{make.HIDDEN_WORKLOAD}: eager": "1777"}},
            "log": "1777",
            "workloads": (
                make.make_workload_result(),
                make.make_workload_result(
                    name=make.HIDDEN_WORKLOAD, hidden=True, parameters={"N": 1777}
                ),
            ),
        },
        mode="ranked",
    )
    for user in (AnonymousUser(), evaluation.submission.author):
        result = shown_result(evaluation, user)
        assert result is not None
        assert [w.name for w in result.workloads] == ["n256"]
        assert result.reason.endswith("but 'out' is wrong on a hidden workload")
        told = f"{result} {public_reason(evaluation, user)}"
        told += str(events(evaluation))
        assert make.HIDDEN_WORKLOAD not in told
        assert "1777" not in told
        assert result.mismatch is not None
        assert result.mismatch.findings == ()
    result = shown_result(evaluation, make.make_admin())
    assert result is not None
    assert len(result.workloads) == 2
    assert result.mismatch is not None
    assert result.mismatch.expected == 1777.0
    assert result.reason == f"wrong in {make.HIDDEN_WORKLOAD}: 1777 is off"


def test_an_author_reads_what_the_kernel_said_of_public_workloads() -> None:
    told = {"reason": "std::runtime_error: N is odd", "output": "hello"}
    ranked = make.make_finished_evaluation(Verdict.RUNTIME_ERROR, told, mode="ranked")
    result = shown_result(ranked, ranked.submission.author)
    assert result is not None
    assert (result.reason, result.output) == (told["reason"], told["output"])
    assert ranked.reason == told["reason"]


def test_events_can_be_read_from_any_point() -> None:
    evaluation = make.make_finished_evaluation()
    everything = events(evaluation)
    assert [event["seq"] for event in everything] == [1, 2, 3]
    assert [event["status"] for event in everything] == ["QUEUED", "RUNNING", "FINISHED"]
    assert everything[-1]["verdict"] == "CORRECT"
    assert events(evaluation, since=2) == everything[2:]
    running = make.make_evaluation()
    payload = {"stage": "measure", "state": "running", "detail": f"2/3 {make.HIDDEN_WORKLOAD}"}
    make.send(running, EventKind.STAGE, payload, seq=1)
    assert events(running)[-1]["payload"]["detail"] == "2/3 a hidden workload"


def test_shipped_kernels_are_entered_once() -> None:
    make.make_task_version()
    cpu = Device.objects.get(slug="cpu")
    (evaluation,) = submit_shipped_kernels(device=cpu, now=make.NOW)
    assert evaluation.submission.agent.kind == "shipped"
    assert not evaluation.submission.author.has_usable_password()
    assert evaluation.mode == "ranked"
    assert submit_shipped_kernels(device=cpu, now=make.NOW) == []
    assert submit_shipped_kernels(device=make.make_device(), now=make.NOW) == []
    make.make_task_version(description="changed")
    assert len(submit_shipped_kernels(device=cpu, now=make.NOW)) == 1


def test_kernels_of_tasks_take_nobodys_name_and_keep_no_device_out(settings: Any) -> None:
    settings.SUBMIT_SHIPPED_KERNELS = True
    mine = make.make_submission(agent="ada-agent").agent
    kernels = tuple(
        ShippedKernel(path=f"kernels/{agent}.cpp", agent=agent, language=Language.CPP)
        for agent in ("kbench-good", "ada-agent")
    )
    files = {kernel.path: f"// {kernel.agent}\n{make.SOURCE}" for kernel in kernels}
    version = make.make_task_version(name="shared", kernels=kernels, files=files)
    make.beat(device="cpu-2")
    agents = version.submissions.values_list("agent__name", flat=True)
    assert set(agents) == {"kbench-good", "ada-agent (shipped)"}
    assert Agent.objects.get(name="ada-agent") == mine
    with pytest.raises(SubmissionError, match="is reserved for kernels"):
        make.make_submission(agent="other (shipped)", task_version=version)


def test_an_audit_waits_behind_people_and_before_the_rest_of_the_sites_own_work() -> None:
    runner = make.make_runner(name="host-1")
    ours, shipped, audit = (
        make.make_evaluation(mode="ranked", now=make.later(seconds)) for seconds in range(3)
    )
    theirs = make.make_evaluation(now=make.later(3))
    for row, urgency in (
        (ours, Urgency.BACKGROUND),
        (shipped, Urgency.AUDITS),
        (audit, Urgency.AUDITS),
    ):
        Evaluation.objects.filter(pk=row.pk).update(queue_place=urgency.place)
        row.refresh_from_db()
    rows = (theirs, shipped, audit, ours)
    assert reason(theirs).startswith("next in the queue")
    assert reason(shipped).startswith("number 2 in the queue")
    assert reason(ours).startswith("number 4 in the queue")
    queue = queue_overview(theirs.submission.author, make.NOW, 9)[0]
    assert [entry.evaluation for entry in queue.waiting] == list(rows)
    assert [entry.evaluation for entry in queue.waiting_of_people] == [theirs]
    assert [entry.evaluation for entry in queue.waiting_own] == list(rows[1:])
    assert (queue.own_depth, queue.ahead) == (3, 1)
    for row, urgency in ((shipped, Urgency.AUDITS), (ours, Urgency.BACKGROUND)):
        assert Evaluation.objects.get(pk=row.pk).urgency is urgency
    handed = [hand_over(token=runner.token, ask=make.make_ask(runner), now=make.NOW) for _ in rows]
    assert [order.job_id for order in handed if order] == [str(row.pk) for row in rows]

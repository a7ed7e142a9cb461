"""Entering, re-running and cancelling, and how a submission came to be entered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks

from gpu_runner.data.solution import SOURCE_LIMIT_BYTES
from gpu_runner.data.verdict import Verdict
from runs_app.core.errors import NotAllowed, QuotaExceeded, SubmissionError
from runs_app.models import Agent, Device, Evaluation, LanguageModel, Status, Submission
from runs_app.submitting.quota import BUILDS_A_SUBMISSION, quota
from runs_app.submitting.remarks import remark_on
from runs_app.submitting.services import cancel, rerun
from runs_app.submitting.shipped import submit_shipped_kernels
from tasks_app.models import Task
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def test_a_submission_comes_with_a_queued_evaluation(
    jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        submission = make.make_submission(agent="evolver", language_model="gpt-9", mode="ranked")
        assert jobs.enqueued == []  # not before the commit
    evaluation = submission.evaluations.get()
    assert (evaluation.status, evaluation.verdict, evaluation.mode) == ("QUEUED", "", "ranked")
    assert submission.agent.kind == Agent.Kind.AGENT
    assert submission.language_model == LanguageModel.objects.get(name="gpt-9")
    assert submission.language == "cpp"
    assert jobs.enqueued == [f"evaluation-{evaluation.pk}-1"]
    assert [event.kind for event in evaluation.events.all()] == ["queued"]


NEEDS = "import torch\nimport numba\nimport scipy\ndef forward(x):\n    return x\n"


def test_a_device_without_what_a_module_imports_refuses_it_by_name() -> None:
    lacks = {"torch": "2.13.0", "numba": "", "scipy": ""}
    runner = make.make_runner(packages=lacks)
    with pytest.raises(SubmissionError) as refused:
        make.make_submission(source=NEEDS, language="python")
    assert refused.value.field == "source"
    assert "(pip install numba scipy)" in refused.value.reason
    assert not Submission.objects.exists()
    runner.packages = {**lacks, "numba": "0.62.1", "scipy": "1.16.0"}
    runner.save()
    submission = make.make_submission(source=NEEDS, language="python")
    runner.packages = lacks
    runner.save()
    with pytest.raises(SubmissionError, match=r"pip install numba scipy") as refused:
        rerun(submission=submission, user=submission.author, now=make.later(5))
    assert refused.value.field == "source"


def test_a_runner_that_may_have_a_package_refuses_nothing() -> None:
    version = make.make_task_version()
    make.make_runner(packages={"torch": "2.13.0", "numba": "", "scipy": ""})
    other = make.make_runner(name="other")
    for packages in (
        {"torch": "2.13.0"},  # of before: it names what it has, and no more
        {},
        {"numba": "0.62.1", "scipy": "1.16.0"},
    ):
        other.packages = packages
        other.save()
        made = make.make_submission(task_version=version, source=NEEDS, language="python")
        assert made.language == "python"


def test_a_module_that_needs_a_gpu_goes_to_one_unless_a_device_is_named() -> None:
    triton = "import triton\ndef forward(x):\n    return x\n"
    cpu = make.make_cpu()
    with pytest.raises(SubmissionError) as refused:
        make.make_submission(source=triton, language="python", device="")
    assert refused.value.field == "device"
    assert "it imports triton. No runner with a CUDA device" in refused.value.reason
    gpu = make.make_device()
    for source, device, expected in (
        (triton, "", gpu),
        (triton, "cpu", cpu),
        ("def forward(x):\n    return x\n", "", cpu),
        ("def forward(x):\n    return x\n", gpu.slug, gpu),
    ):
        submission = make.make_submission(source=source, language="python", device=device)
        assert submission.evaluations.get().device == expected
        assert (submission.language, submission.solution.language.suffix) == ("python", ".py")


def test_a_kernel_is_the_same_with_the_line_ends_of_a_browser() -> None:
    source = "int a;\nint b;\n"
    sent = make.make_submission(source=source)
    pasted = make.make_submission(source=source.replace("\n", "\r\n"))
    marked = make.make_submission(source="\ufeff" + source)
    assert pasted.source == marked.source == sent.source
    assert pasted.digest == marked.digest == sent.digest


def test_a_person_stands_for_their_own_kernels() -> None:
    user = make.make_user(username="ada")
    first, second = (make.make_submission(user=user, agent=name) for name in ("", "ada"))
    assert first.agent == second.agent == Agent.objects.get(name="ada", kind="person", user=user)
    make.make_submission(agent="eve")
    submission = make.make_submission(user=make.make_user(username="eve"))  # gets another name
    assert (submission.agent.kind, submission.agent.name == "eve") == (Agent.Kind.PERSON, False)


def test_bad_input_is_refused_with_its_field() -> None:
    version, user = make.make_task_version(), make.make_user()
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("source", {"source": ""}, "is empty"),
        ("source", {"source": "  \n"}, "is empty"),
        ("source", {"source": "x" * (2**20 + 1)}, f"limit is {SOURCE_LIMIT_BYTES}"),
        ("source", {"source": "a\0b"}, "NUL"),
        ("source", {"source": "// flags: -O9\nint x;"}, "line 1: flags: '-O9'"),
        ("source", {"source": "\ud800"}, "UTF-8"),
        ("language", {"language": "rust"}, "'rust' is not"),
        ("language", {"language": "cuda", "device": "cpu"}, "not CUDA C++"),
        ("direction", {"direction": "sideways"}, "'sideways' is not"),
        ("direction", {"direction": "backward"}, "has only: forward"),
        ("mode", {"mode": "turbo"}, "'turbo' is not"),
        ("device", {"device": "abacus"}, "known devices: cpu"),
        ("device", {"device": "cuda"}, "no runner with a CUDA device"),
        ("agent", {"agent": "<script>"}, "must start with"),
        ("agent", {"agent": "x" * 101}, "at most 100"),
        ("language_model", {"language_model": "a\nb"}, "must start with"),
    )
    for field, changes, words in cases:
        with pytest.raises(SubmissionError) as caught:
            make.make_submission(task_version=version, user=user, **changes)
        assert caught.value.field == field
        assert words in caught.value.reason
    for model in (Submission, Evaluation, Agent, LanguageModel):
        assert not model._default_manager.exists()


def test_the_names_of_others_are_refused() -> None:
    make.make_submission(user=make.make_user(username="ada"))
    submit_shipped_kernels(device=Device.objects.get(slug="cpu"), now=make.NOW)
    for name in ("ada", "kbench-good", "origin", "mskernelbench-origin"):
        with pytest.raises(SubmissionError, match=r"is taken|is already taken|is reserved"):
            make.make_submission(agent=name)


def test_a_task_that_is_not_public_takes_no_submissions_and_reruns_of_admins_alone() -> None:
    submission = make.make_submission()
    Task.objects.update(state=Task.State.RETIRED)
    submission = Submission.objects.get()
    with pytest.raises(SubmissionError, match="accept submissions"):
        make.make_submission(task_version=submission.task_version)
    with pytest.raises(SubmissionError, match="accept submissions"):
        rerun(submission=submission, user=submission.author, now=make.later(1))
    rerun(submission=submission, user=make.make_admin(), now=make.later(1))


def test_cuda_means_the_only_cuda_device() -> None:
    make.make_device()
    assert make.make_evaluation(device="cuda").device_id == "nvidia-h200"
    assert make.make_evaluation(device="", language="cuda").device_id == "nvidia-h200"
    assert make.make_evaluation(device="", language="cpp").device_id == "cpu"
    make.make_device(slug="nvidia-a100", name="NVIDIA A100")
    with pytest.raises(SubmissionError, match="choose one of: cpu, nvidia-a100, nvidia-h200"):
        make.make_evaluation(device="cuda")


def test_the_waiting_limit_holds(settings: Any) -> None:
    settings.MAX_WAITING_PER_USER = 2
    user = make.make_user()
    first = make.make_submission(user=user)
    make.make_submission(user=user)
    with pytest.raises(QuotaExceeded, match="2 evaluations waiting"):
        make.make_submission(user=user)
    with pytest.raises(QuotaExceeded, match="2 evaluations waiting"):
        rerun(submission=first, user=user, now=make.NOW)
    cancel(evaluation=first.evaluations.get(), user=user, now=make.NOW)
    make.make_submission(user=user)
    make.make_submission()  # others are not concerned


def test_compile_checks_cost_nothing_but_have_a_wide_limit(settings: Any) -> None:
    settings.MAX_SUBMISSIONS_PER_DAY = 1
    user = make.make_user()
    make.make_submission(user=user)
    for _ in range(BUILDS_A_SUBMISSION):
        check = make.make_submission(user=user, mode="compile")
        make.finish(check.evaluations.get(), verdict=Verdict.COMPILED)
    with pytest.raises(QuotaExceeded, match="used all 10 compile checks"):
        make.make_submission(user=user, mode="compile")
    assert quota(user, make.NOW).today == 1


def test_what_waits_to_be_measured_keeps_nobody_from_compiling(settings: Any) -> None:
    settings.MAX_WAITING_PER_USER = 1
    user = make.make_user()
    for _ in range(BUILDS_A_SUBMISSION):
        make.make_submission(user=user, mode="compile")
    make.make_submission(user=user, mode="ranked")
    with pytest.raises(QuotaExceeded, match="1 evaluations waiting"):
        make.make_submission(user=user)
    with pytest.raises(QuotaExceeded, match="10 compile checks waiting"):
        make.make_submission(user=user, mode="compile")


def test_the_daily_limit_holds_for_a_day(settings: Any) -> None:
    settings.MAX_SUBMISSIONS_PER_DAY = 1
    user = make.make_user()
    first = make.make_submission(user=user)
    with pytest.raises(QuotaExceeded, match="until 2026-01-03 03:04"):
        make.make_submission(user=user, now=make.NOW + timedelta(hours=23))
    with pytest.raises(QuotaExceeded, match="all 1"):
        rerun(submission=first, user=user, now=make.later(1))
    make.make_submission(user=user, now=make.NOW + timedelta(hours=24))


def test_a_rerun_is_a_new_evaluation_for_the_author_and_admins() -> None:
    submission = make.make_submission(mode="test")
    again = rerun(submission=submission, user=submission.author, now=make.later(1))
    assert submission.evaluations.count() == 2
    assert (again.mode, again.device_id, again.attempt) == ("test", "cpu", 1)
    ranked = rerun(submission=submission, user=submission.author, now=make.later(2), mode="ranked")
    assert ranked.mode == "ranked"
    with pytest.raises(NotAllowed):
        rerun(submission=submission, user=make.make_user(), now=make.NOW)
    with pytest.raises(NotAllowed):
        cancel(evaluation=again, user=make.make_user(), now=make.NOW)
    rerun(submission=submission, user=make.make_admin(), now=make.NOW)
    make.make_device()
    with pytest.raises(SubmissionError, match=r"runs only CUDA C\+\+ and Python"):
        rerun(submission=submission, user=submission.author, now=make.NOW, device="nvidia-h200")


def test_a_cancelled_evaluation_leaves_the_queue(
    jobs: Jobs, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    evaluation = make.make_evaluation()
    user = evaluation.submission.author
    with django_capture_on_commit_callbacks(execute=True):
        cancel(evaluation=evaluation, user=user, now=make.later(5))
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.verdict) == (Status.CANCELLED, "")
    assert evaluation.finished_at == make.later(5)
    assert jobs.dropped == [f"evaluation-{evaluation.pk}-1"]
    with pytest.raises(NotAllowed, match="already canceled"):
        cancel(evaluation=evaluation, user=user, now=make.later(6))


@pytest.mark.parametrize("verdict", [Verdict.CORRECT, Verdict.UNSTABLE])
def test_a_rerun_that_has_begun_counts_where_an_earlier_one_was_right(verdict: Verdict) -> None:
    """Who could stop those that go badly would keep the luckiest of many."""
    submission = make.make_submission(mode="ranked")
    author, admin = submission.author, make.make_admin()
    make.finish(submission.evaluations.get(), verdict=verdict)
    waits = rerun(submission=submission, user=author, now=make.later(1))
    cancel(evaluation=waits, user=author, now=make.later(2))
    again = rerun(submission=submission, user=author, now=make.later(3))
    make.start(again)
    entered_again = make.make_evaluation(mode="ranked", user=author)
    make.start(entered_again)
    for one in (again, entered_again):
        if verdict is Verdict.CORRECT:
            with pytest.raises(NotAllowed, match="only admins can cancel a re-run"):
                cancel(evaluation=one, user=author, now=make.later(4))
        cancel(
            evaluation=one, user=admin if verdict is Verdict.CORRECT else author, now=make.later(4)
        )
    other = make.make_evaluation(mode="ranked", user=author, source=f"{make.SOURCE}// new\n")
    make.start(other)
    cancel(evaluation=other, user=author, now=make.later(4))


def test_without_redis_a_command_says_so_and_a_submission_is_stored_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    monkeypatch.undo()  # nothing stands in for the queue
    version = make.make_task_version()
    for command in ("demo", "submit_shipped_kernels"):
        with pytest.raises(CommandError, match=r"Redis isn.t responding.*nothing was") as caught:
            call_command(command)
        assert ("\n" in str(caught.value), caught.value.returncode) == (False, 1)
    assert not Evaluation.objects.exists()
    with django_capture_on_commit_callbacks(execute=True):
        evaluation = make.make_evaluation(task_version=version)
    assert Evaluation.objects.get().pk == evaluation.pk


@pytest.mark.usefixtures("jobs")
def test_a_module_without_its_function_is_told_so() -> None:
    version = make.make_task_version()
    for source, is_missing in (
        ("import torch\ndef helper(x, N):\n    return x\n", True),
        ("class Other:\n    def forward(self): pass\n", True),
        ("import torch\nif 1:\n    forward = torch.relu\n", False),
        ("from helper import *\n", False),
        ("class ModelNew: pass\n", False),
    ):
        remark = remark_on(
            make.make_submission(task_version=version, language="python", source=source)
        )
        missing = "The module doesn't define `forward` or `ModelNew`"
        assert remark.startswith(missing) is is_missing, source


def test_a_copy_is_said_to_be_one(client: Client, jobs: Jobs) -> None:
    first = make.make_submission(agent="first")
    own = make.make_submission(
        agent="first", user=first.author, task_version=first.task_version, now=make.later(5)
    )
    copy = make.make_submission(
        agent="copier", user=make.make_user(username="bob"), task_version=first.task_version,
        now=make.later(9),
    )  # fmt: skip
    assert remark_on(own) == ""
    assert remark_on(copy) == f"The same source was submitted by first: submission {first}."
    assert "the same source as" in client.get(copy.get_absolute_url()).content.decode()
    assert "the same source as" not in client.get(own.get_absolute_url()).content.decode()
    Submission.objects.filter(pk=first.pk).update(private=True)
    Submission.objects.filter(pk=own.pk).update(private=True)
    assert remark_on(copy) == ""


Origin = Submission.Origin


def test_what_is_private_and_for_a_version_that_was_never_public_is_a_dry_run() -> None:
    version = make.make_task_version()
    entered = make.make_submission(task_version=version, private=True, origin=Origin.API)
    version.published_at = None
    tried = make.make_submission(task_version=version, private=True, origin=Origin.API)
    shown = make.make_submission(task_version=version)
    assert [each.origin for each in (entered, tried, shown)] == ["api", "dry_run", "person"]


def test_the_database_refuses_an_origin_that_the_other_columns_deny() -> None:
    submission = make.make_submission()
    earlier = make.make_submission(task_version=submission.task_version)
    run = make.make_run(task_version=submission.task_version)
    cases: tuple[dict[str, Any], ...] = (
        {"origin": ""},
        {"origin": "guess"},
        {"origin": "run"},
        {"origin": "dry_run"},
        {"origin": "dry_run", "private": True, "carried_from": earlier},
        {"origin": "person", "carried_from": earlier},
        {"origin": "person", "run": run},
    )
    for columns in cases:
        with pytest.raises(IntegrityError, match="submission_"), transaction.atomic():
            Submission.objects.filter(pk=submission.pk).update(**columns)


def test_a_carried_one_stays_so_when_the_earlier_one_is_deleted() -> None:
    earlier = make.make_submission()
    later = make.make_submission(task_version=earlier.task_version)
    Submission.objects.filter(pk=later.pk).update(origin=Origin.CARRIED, carried_from=earlier)
    earlier.delete()
    later.refresh_from_db()
    assert (later.origin, later.carried_from) == ("carried", None)

"""Runs measured by the real runner in its jail: kernels that are good, bad and hostile."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from gpu_runner.data.formats import catalog_folder
from runs_app.core.runners.tokens import grant_login, local_runner
from runs_app.models import Evaluation, EvaluationEvent, Run, Runner
from tasks_app.selectors import find_task
from tests import factories as make
from tests.integration.conftest import Site
from tests.integration.run_stack import wait_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="no jail can be made here"),
]


@pytest.fixture
def real_site(bare_site: Site) -> Iterator[Site]:
    """The site with a real runner of the CPU, and a task whose baselines are known."""
    call_command("load_tasks", str(catalog_folder() / "vector_add"), verbosity=0)
    task = find_task("vector_add")
    assert task is not None
    fields = {"task_version": task.current_version, "user": bare_site.user}
    known = make.make_evaluation(mode="ranked", **fields)
    make.finish(known)  # nobody measures it: it would take longer than all tests
    bare_site.stack.login = grant_login(local_runner(now=timezone.now()))
    bare_site.stack.start("cpu")
    name = f"{settings.LOCAL_RUNNER}."
    ready = Runner.objects.filter(name__startswith=name, state="ready")
    wait_for(ready.exists, "the runner is ready")
    yield bare_site
    bare_site.stack.kill("cpu")


def start(site: Site, strategy: str, parameters: dict[str, Any], **document: Any) -> Run:
    fields = {"task": "vector_add", "seed_kernel": "naive", "profile": "none"}
    return site.start(strategy, parameters, **{**fields, **document})


def test_hostile_kernels_end_with_their_verdicts(real_site: Site) -> None:
    real_site.speak("hostile")
    run = start(
        real_site,
        "evolve",
        {"generations": 1, "proposals": 4, "recommendations": 0},
        concurrent_asks=1,  # answers in the order of the script
    )
    real_site.settled(run, timeout_s=400)
    verdicts = run.candidates.order_by("number").values_list("title", "verdict")
    assert dict(verdicts) == {
        "kbench-naive": "CORRECT",
        "unrolled": "CORRECT",
        "unknown name": "COMPILE_ERROR",
        "reads a file": "WRONG_RESULT",
        "forks": "RUNTIME_ERROR",
    }
    assert not run.candidates.filter(feedback=None).exists()
    real_site.replays(run)


def test_a_killed_runner_is_no_end(real_site: Site) -> None:
    run = start(real_site, "autotune", {"evaluations": 4, "sample": 2}, models=[])
    evaluations = Evaluation.objects.filter(submission__run=run)
    wait_for(lambda: evaluations.filter(status="RUNNING", stage="measure").exists(), "it measures")
    real_site.stack.kill("cpu")
    real_site.stack.start("cpu")
    real_site.settled(run, timeout_s=400)
    assert run.reason == "4 combinations were measured, the number requested"
    assert evaluations.count() == run.evaluations == 4
    assert set(evaluations.values_list("verdict", flat=True)) == {"CORRECT"}
    events = EvaluationEvent.objects.filter(evaluation__in=evaluations)
    assert events.filter(kind="lost").count() == 1  # the killed runner's, once
    assert sum(candidate.attempt - 1 for candidate in evaluations) == 1
    times = evaluations.filter(verdict="CORRECT").values_list("latency_ns", flat=True)
    assert run.best_latency_ns == min(times)
    real_site.replays(run)

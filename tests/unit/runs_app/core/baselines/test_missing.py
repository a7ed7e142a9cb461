"""Wherever a baseline is missing, the reason stands, without a hidden size."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.baselines import failure
from kbench_client.details import summary
from runs_app.core.baselines.missing import missing_baselines
from runs_app.models import Evaluation
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

ALONE: dict[str, Any] = {
    "workloads": (make.make_workload_result(baselines={}, speedups={}),),
    "speedups": {},
    "unlisted_speedups": {},
}
OOM = "CUDA out of memory. Tried to allocate 1777 MiB"


def ranked(result: dict[str, Any] | None = None, **columns: Any) -> Evaluation:
    return make.make_finished_evaluation(
        mode=columns.pop("mode", "ranked"), result={**ALONE, **(result or {})}, **columns
    )


def missing(evaluation: Evaluation) -> dict[str, str]:
    return missing_baselines(evaluation, evaluation.result.data)


def test_the_page_the_api_and_the_client_give_the_reason_of_each() -> None:
    errors = {"n256: eager": OOM, "n256: compiled": "Cannot find a working triton installation"}
    evaluation = ranked({"environment": make.make_result(make.make_evaluation()).environment})
    stored = evaluation.result
    stored.document["environment"]["baseline_errors"] = errors
    stored.save()
    path = f"submissions/{evaluation.submission_id}"
    shown = Client().get(f"/api/v1/{path}").json()
    found = next(each for each in shown["evaluations"] if each["id"] == str(evaluation.pk))
    assert found["missing_baselines"] == {
        "eager": "it ran out of memory",
        "compiled": "this runner has no working torch.compile",
    }
    page = Client().get(f"/{path}/").content.decode()
    for name, why in found["missing_baselines"].items():
        assert page.count(why) >= 2, "in the sentence and beside the figures"
        assert f"no {name} baseline: {why}" in summary(found)
    assert "1777" not in page
    assert "1777" not in str(found), "its text came from a process that knew hidden sizes, too"


def test_a_failure_is_told_in_fixed_phrases() -> None:
    told = {
        "wrong by the task's own tolerance: off by 1777": "its output is outside",
        "torch._dynamo.exc.BackendCompilerFailed: 1777": "torch.compile failed",
        "a call took more than 1777 ms": "it took too long",
        "1777": "it failed on this runner",
    }
    for text, words in told.items():
        assert failure(text).startswith(words)
        assert failure(failure(text)) == failure(text)


def test_a_board_says_why_a_speedup_is_missing() -> None:
    version = make.make_task_version()
    eager = {"eager": make.make_measurement(2000.0)}
    one = make.make_workload_result(baselines=eager, speedups={"eager": 2.0, "best": 2.0})
    half = {"workloads": (one,), "speedups": {"eager": 2.0, "best": 2.0}}
    ranked({**half, "pending_baselines": ("compiled",)}, task_version=version)
    make.make_finished_evaluation(mode="ranked", task_version=version)
    ranked(half, task_version=version, agent="robot")
    board = Client().get(f"/leaderboard/?task={version.task.slug}&device=cpu").content.decode()
    assert "still waiting for this baseline" in board
    assert "still waiting for baselines on unlisted sizes" in board
    assert "The task has no unlisted sizes for this device, or" in board
    names = Client().get("/leaderboard/?by=agent&device=cpu&over=own").content.decode()
    assert "No result that counts here was compared on unlisted sizes" in names

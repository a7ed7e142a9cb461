"""Which kernel a run begins with, and who may thereby see it."""

from __future__ import annotations

from typing import Any

import pytest

from runs_app.core.errors import SubmissionError
from runs_app.models import Run
from tests import factories as make
from tests.unit.runs_app.optimiser.conftest import Start

pytestmark = pytest.mark.django_db


def test_a_private_kernel_is_the_seed_of_a_private_run_only(start: Start) -> None:
    version = make.make_finished_evaluation().task_version
    own: dict[str, Any] = {
        "source": make.SOURCE + "// mine\n",
        "task_version": version,
        "private": True,
    }
    fast = make.make_finished_evaluation(result={"latency_ns": 1.0}, **own)
    best: dict[str, Any] = {
        "user": fast.submission.author,
        "task_version": version,
        "seed_kernel": "best",
    }
    assert start(**best).problem["seed_source"] == make.SOURCE
    assert start(**best, private=True).problem["seed_source"] == own["source"]


def test_the_best_kernel_has_the_best_score(start: Start) -> None:
    tuned = {"latency_ns": 100.0, "unlisted_speedups": {"best": 0.01}}
    version = make.make_finished_evaluation(mode="ranked", result=tuned).task_version
    general = make.make_finished_evaluation(mode="ranked", task_version=version)
    run = start(task_version=version, seed_kernel="best")
    assert run.problem["seed_source"] == general.submission.source


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (make.SOURCE, "declares no knobs"),
        ("int x;\nconstexpr int A = 1;  // knob: 1\n" + make.SOURCE, "line 2: A needs two values"),
    ],
)
def test_a_kernel_that_cannot_be_tuned_is_refused(start: Start, source: str, reason: str) -> None:
    wanted: dict[str, Any] = {"strategy": "autotune", "models": []}
    with pytest.raises(SubmissionError, match=reason) as refused:
        start(**wanted, seed_kernel="own", source=source)
    assert refused.value.field == "source"
    if source == make.SOURCE:  # what the task ships
        with pytest.raises(SubmissionError, match=reason) as refused:
            start(**wanted)
        assert refused.value.field == "seed_kernel"
    tunable = "constexpr int A = 1;  // knob: 1 2\n" + make.SOURCE
    assert start(**wanted, seed_kernel="own", source=tunable).status == "RUNNING"
    assert Run.objects.count() == 1


def test_a_translation_begins_without_a_kernel_unless_one_is_named(
    start: Start,
) -> None:
    wanted: dict[str, Any] = {"strategy": "translate", "task_version": make.make_task_version()}
    assert start(**wanted).problem["seed_source"] == ""
    assert start(**wanted, seed_kernel="naive").problem["seed_source"] == make.SOURCE

"""Built-in tasks' own baselines are right by their tasks' bounds, or they would be no baselines."""

from __future__ import annotations

import inspect

import pytest

from gpu_runner.data.verdict import Direction
from tests.unit.catalog.judging import Case, cases, problem, task
from tests.unit.catalog.test_tasks import NAMES

FORWARD = Direction.FORWARD
OWN = [
    name
    for name in NAMES
    if FORWARD in task(name).directions
    and problem(name).baseline(FORWARD) is not problem(name).function(FORWARD)
]
SEED = 1


def test_some_tasks_have_one() -> None:
    assert {"spmm_coo", "spmm_coo_bf16", "softmax_attention_bf16"} <= set(OWN)


@pytest.mark.parametrize("case", cases(*OWN, direction=FORWARD), ids=str)
def test_a_baseline_is_right_on_every_workload_of_a_cpu(case: Case) -> None:
    baseline = problem(case.name).baseline(FORWARD)
    assert case.passes(baseline(*case.draw(SEED).arguments), SEED)


@pytest.mark.parametrize("name", OWN)
def test_a_baseline_says_how_it_differs(name: str) -> None:
    assert inspect.getdoc(problem(name).baseline(FORWARD))

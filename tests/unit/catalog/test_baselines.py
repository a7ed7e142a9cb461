"""Built-in tasks' own baselines are right by their tasks' bounds, or they would be no baselines."""

from __future__ import annotations

import pytest
import torch

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


@pytest.mark.sampled(40)
@pytest.mark.each_task
@pytest.mark.parametrize("case", cases(*OWN, direction=FORWARD), ids=str)
def test_a_baseline_is_right_on_every_workload_of_a_cpu(case: Case) -> None:
    baseline = problem(case.name).baseline(FORWARD)
    assert case.passes(baseline(*case.draw(SEED).arguments), SEED)


class OnDevice(torch.Tensor):
    """A tensor that says it is on a GPU, for baselines that choose by that."""

    is_cuda = True


@pytest.mark.parametrize("case", cases("layernorm", direction=FORWARD), ids=str)
def test_what_a_gpu_gets_is_right_too(case: Case) -> None:
    """Of `histogram`, torch has it on GPUs alone."""
    arguments = case.draw(SEED).arguments
    marked = [a.as_subclass(OnDevice) if isinstance(a, torch.Tensor) else a for a in arguments]
    output = problem(case.name).baseline(FORWARD)(*marked)
    assert isinstance(output, OnDevice)
    assert case.passes(output.as_subclass(torch.Tensor), SEED)

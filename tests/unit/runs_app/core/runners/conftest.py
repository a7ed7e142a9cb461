"""A job of each kind, for what they have in common."""

from __future__ import annotations

import pytest

from runs_app.models import JOBS, BaselineMeasurement, Evaluation, RunnerJob, TaskCheck
from tests import factories as make
from tests.unit.runs_app.core.runners import asking


@pytest.fixture(params=JOBS.values())
def job(request: pytest.FixtureRequest) -> RunnerJob:
    """One that waits in the CPU's queue since `make.NOW`."""
    if request.param is Evaluation:
        return make.make_evaluation()
    if request.param is TaskCheck:
        return asking.check()
    assert request.param is BaselineMeasurement, "say here how one of a new kind is made"
    return asking.baselines(make.make_task_version())

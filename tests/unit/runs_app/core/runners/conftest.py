"""A job of each kind, for what they have in common."""

from __future__ import annotations

import pytest

from runs_app.core.baselines.services import ensure_baselines
from runs_app.core.checks.services import request_check
from runs_app.models import JOBS, Evaluation, RunnerJob, TaskCheck
from tests import factories as make


@pytest.fixture(params=JOBS.values())
def job(request: pytest.FixtureRequest) -> RunnerJob:
    """One that waits in the CPU's queue since `make.NOW`."""
    if request.param is Evaluation:
        return make.make_evaluation()
    version, device = make.make_task_version(), make.make_cpu()
    if request.param is TaskCheck:
        return request_check(version=version, device=device, user=make.make_admin(), now=make.NOW)
    measurement = ensure_baselines(
        version=version, device=device, direction="forward", now=make.NOW
    )
    assert measurement is not None
    return measurement

"""Who does the work of a call on a GPU, from what ncu has said on one."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import Measurement, WorkloadResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction, Language, Mode
from gpu_runner.supervisor.audit.cuda import work_on_gpu
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper
from gpu_runner.supervisor.tools import ncu
from gpu_runner.supervisor.work.told import work_suspicions
from tests.protocol.evaluating import request

CAPTURED = Path(__file__).parents[1] / "captured"
TASK = find_task("softmax")
PUBLIC = next(w for w in TASK.workloads if not w.hidden)
MODULE = Target(Abi.TORCH, Direction.FORWARD, source="pass")
ASKED = request(TASK, "import cupy", Mode.RANKED, Language.PYTHON)


class Says:
    """A bench whose process leaves a report that was captured."""

    def __init__(self, report: str) -> None:
        self._report = report

    def run_profiled(self, target: Target, workload: Workload, ncu: Wrapper) -> str:
        assert workload == PUBLIC
        os.write(ncu.descriptor, self._report.encode())
        return ""


def results() -> list[WorkloadResult]:
    time = Measurement(time_ns=1e5, low_ns=9e4, high_ns=2e5, calls=9)
    return [WorkloadResult(name=PUBLIC.name, parameters={}, hidden=False, measurement=time)]


@pytest.mark.parametrize(("captured", "is_own"), [("anchor", True), ("torch", False)])
def test_the_kernels_that_ran_tell_who_worked(
    captured: str, is_own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ncu, "find", lambda: "/usr/bin/ncu")
    report = (CAPTURED / f"ncu_{captured}.csv").read_text()
    worked = work_on_gpu(ASKED, Says(report), MODULE, None, results())
    assert worked is not None
    assert (worked.own > 0) is is_own
    assert bool(work_suspicions(worked)) is not is_own
    assert worked.workload == PUBLIC.name


@pytest.mark.parametrize("path", ["", "/usr/bin/ncu"])
def test_without_a_profilers_word_nothing_is_told(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ncu, "find", lambda: path)
    silent = Says("==ERROR== ERR_NVGPUCTRPERM")
    assert work_on_gpu(ASKED, silent, MODULE, None, results()) is None
    nothing = [dataclasses.replace(each, measurement=None) for each in results()]
    assert work_on_gpu(ASKED, silent, MODULE, None, nothing) is None

"""Whatever ncu does, a profile comes of it: counters, or a reason why there are none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction, Verdict
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import ncu
from gpu_runner.supervisor.tools.profiling import count

ANCHOR = (Path(__file__).parents[1] / "captured" / "ncu_anchor.csv").read_text()
TARGET = Target(Abi.C, Direction.FORWARD)
WORKLOAD = Workload(name="w", parameters={})


class FakeBench:
    """Stands for a profiled process: writes a report, prints, and may fail."""

    def __init__(self, report: str = "", printed: str = "", fault: Fault | None = None) -> None:
        self._report, self._printed, self._fault = report, printed, fault

    def run_profiled(self, target: Target, workload: Workload, profiler: ncu.Ncu) -> str:
        os.write(profiler.descriptor, self._report.encode())
        if self._fault is not None:
            raise FaultError(self._fault)
        return self._printed


def counted(**behaviour: Any) -> tuple[int, str]:
    found = count("/usr/bin/ncu", cast(Bench, FakeBench(**behaviour)), TARGET, WORKLOAD)
    return len(found.launches), found.reason


def test_counters_count_even_if_the_process_died_after_them() -> None:
    assert counted(report=ANCHOR) == (2, "")
    died = Fault(Verdict.RUNTIME_ERROR, "the process died")
    assert counted(report=ANCHOR, fault=died) == (2, "")


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({}, "no kernel"),
        ({"report": "==ERROR== ERR_NVGPUCTRPERM - no permission\n"}, "ERR_NVGPUCTRPERM"),
        ({"printed": "==ERROR== Failed to initialize the profiler"}, "Failed to initialize"),
        ({"fault": Fault(Verdict.RUNTIME_ERROR, "the process died")}, "the process died"),
        ({"fault": Fault(Verdict.TIME_LIMIT, "an endless loop?")}, "ncu took too long"),
        ({"report": ANCHOR.replace("gpu__dram_throughput", "other")}, "no kernel"),
    ],
)
def test_no_counters_have_a_reason(behaviour: dict[str, Any], words: str) -> None:
    launches, reason = counted(**behaviour)
    assert launches == 0
    assert words in reason

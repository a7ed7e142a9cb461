"""The parts of a profile, and what ncu's tables and words become."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from gpu_runner.data.profile import THROUGHPUTS, KernelResources, Profile
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction, Verdict
from gpu_runner.supervisor.device.device import Peak
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import ncu, profiling
from gpu_runner.supervisor.tools.ncu import (
    LAUNCH_METRICS,
    METRICS,
    Launch,
    Ncu,
    complaint,
    complete,
    kernels,
    parse,
)
from gpu_runner.supervisor.tools.profiling import Timed, count

PEAK = Peak(1e12, {"float32": 10e12})
SMALL = Timed("small", latency_ns=1000.0, bytes=1e5, flops=1e6)
LARGE = Timed("large", latency_ns=8000.0, bytes=4e6, flops=8e6)
HALVES = dict.fromkeys(THROUGHPUTS, 50.0)


def profile(**changes: object) -> Profile:
    known = {"tool": "portable", "reason": "r", "workload": "w", "metrics": HALVES}
    return Profile(**{**known, **changes})  # type: ignore[arg-type]


def test_rates_are_work_over_time_against_the_peak() -> None:
    found = profiling.roofline_metrics(LARGE, PEAK, "float32")
    assert found["achieved_bytes_per_s"] == pytest.approx(5e11)
    assert found["dram_throughput_pct"] == found["memory_throughput_pct"] == pytest.approx(50)
    assert found["compute_throughput_pct"] == pytest.approx(10)
    assert found["arithmetic_intensity_flop_per_byte"] == pytest.approx(2)
    assert found["ridge_intensity_flop_per_byte"] == pytest.approx(10)
    fast = Timed("fast", latency_ns=1.0, bytes=1e9, flops=1e9)  # capped, at float32's rate
    found = profiling.roofline_metrics(fast, PEAK, "bfloat16")
    assert [found[name] for name in THROUGHPUTS] == [100.0] * 3
    assert profiling.largest([SMALL, LARGE]) is LARGE
    without = [Timed("a", 1.0, 5.0, 0.0), Timed("b", 1.0, 9.0, 0.0)]
    assert profiling.largest(without).name == "b"


@pytest.mark.parametrize(
    ("registers", "shared", "architecture", "pct"),
    [
        (32, 0, "sm_90", 100.0),
        (255, 0, "sm_90", 12.5),
        (32, 100 << 10, "sm_90", 25.0),  # two blocks fit into 228 KiB
    ],
)
def test_occupancy_follows_registers_and_shared_memory(
    registers: int, shared: int, architecture: str, pct: float
) -> None:
    kernel = KernelResources(name="k", registers=registers, shared_bytes=shared)
    (found,) = profiling.estimates((kernel,), architecture)
    assert found.metrics["estimated_occupancy_pct"] == pct


def test_ncu_wraps_the_program_and_is_in_the_jail() -> None:
    limits = jail.Limits(cpu_s=1, memory_bytes=1, processes=1)
    with Ncu("/opt/somewhere/ncu") as ncu:
        command = ncu.command(["runner", "3"])
        assert command[-2:] == ["runner", "3"]
        assert "--clock-control" in command
        assert f">&{ncu.descriptor}" in command[2]
        inside = ncu.jail(jail.Jail(limits=limits, environment={"A": "b"}))
        assert inside.environment == {"A": "b", "KERNEL_PROFILED": "1"}
        assert ncu.report() == ""


FOLDER = Path(__file__).parents[1] / "captured"
ANCHOR = (FOLDER / "ncu_anchor.csv").read_text()  # the anchor kernel, launched twice
DURATION = "gpu__time_duration.sum"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def test_every_metric_that_we_name_is_in_a_real_report() -> None:
    (kernel,) = kernels(parse(ANCHOR))
    assert set(METRICS) | set(LAUNCH_METRICS) <= set(kernel.metrics)
    assert kernel.metrics["block_threads"] == 256
    assert kernel.metrics["theoretical_occupancy_pct"] == 100
    assert kernel.metrics["launches_count"] == 2


def test_thousands_may_be_parted_and_cells_without_a_number_are_left_out() -> None:
    report = (
        f'"ID","Kernel Name","{DURATION}","{SM}","other"\n'
        '"","","ns","%",""\n'
        '"0","f(int)","1,234","50.5","no data"\n'
        '"1","g(int)","n/a","50.5","1"\n'
    )
    assert parse(report) == [Launch("f(int)", 1234.0, {"ID": 0.0, DURATION: 1234.0, SM: 50.5})]
    assert complete(parse(report)) == []
    endless = ANCHOR.replace("anchor_kernel(float *, const float *, int)", "k" * 200_000)
    for none in ("", "==PROF== Connected\n", "no table\nat all\n", endless):
        assert parse(none) == []
    text = "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - no permission\n"
    assert complaint("", text) == complaint(text, "") == "ERR_NVGPUCTRPERM - no permission"
    assert complaint("", "the kernel printed this") == ""


TARGET = Target(Abi.C, Direction.FORWARD)
WORKLOAD = Workload(name="w", parameters={})


class FakeBench:
    """Stands for a profiled process: writes a report, prints, and may fail."""

    def __init__(self, report: str = "", printed: str = "", fault: Fault | None = None) -> None:
        self._report, self._printed, self._fault = report, printed, fault

    def run_profiled(self, target: Target, workloads: Sequence[Workload], profiler: ncu.Ncu) -> str:
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
        ({"fault": Fault(Verdict.RUNTIME_ERROR, "the process died")}, "the process died"),
        ({"fault": Fault(Verdict.TIME_LIMIT, "an endless loop?")}, "ncu took too long"),
        ({"report": ANCHOR.replace("gpu__dram_throughput", "other")}, "no kernel"),
    ],
)
def test_no_counters_have_a_reason(behaviour: dict[str, Any], words: str) -> None:
    launches, reason = counted(**behaviour)
    assert launches == 0
    assert words in reason

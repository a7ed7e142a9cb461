"""The parts of a profile, and what ncu's tables and words become."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from gpu_runner.data.codec import DataError, decode, encode
from gpu_runner.data.evaluation import BuildReport, EvaluationResult
from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics, KernelResources, Profile
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Mode, Verdict
from gpu_runner.supervisor.build import vectorization
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device.device import Peak
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import ncu, profiling
from gpu_runner.supervisor.tools.ncu import (
    LAUNCH_METRICS,
    METRICS,
    STALLS_SHOWN,
    Launch,
    Ncu,
    complaint,
    complete,
    kernels,
    parse,
    total,
)
from gpu_runner.supervisor.tools.profiling import Timed, count

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
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


def test_scaling_is_one_for_proportional_and_zero_for_fixed_times() -> None:
    double = Timed("double", latency_ns=2000.0, bytes=2e5, flops=0.0)
    flat = Timed("flat", latency_ns=1000.0, bytes=2e5, flops=0.0)
    assert profiling.scaling([SMALL, double]) == pytest.approx(1)
    assert profiling.scaling([SMALL, flat]) == pytest.approx(0)
    assert profiling.scaling([SMALL]) is None
    assert "fixed cost" in profiling.roofline_notes([SMALL, flat], PEAK, "float32")[-1]


@pytest.mark.parametrize(
    ("registers", "shared", "architecture", "pct"),
    [
        (32, 0, "sm_90", 100.0),
        (64, 0, "sm_90", 50.0),
        (255, 0, "sm_90", 12.5),
        (32, 100 << 10, "sm_90", 25.0),  # two blocks fit into 228 KiB
        (32, 0, "sm_86", 100.0),
    ],
)
def test_occupancy_follows_registers_and_shared_memory(
    registers: int, shared: int, architecture: str, pct: float
) -> None:
    kernel = KernelResources(name="k", registers=registers, shared_bytes=shared)
    assert profiling.occupancy_pct(kernel, architecture) == pct
    (found,) = profiling.estimates((kernel,), architecture)
    assert found.duration_ns is None
    assert found.metrics["estimated_occupancy_pct"] == pct


def test_vectorised_loops_are_counted_by_their_place() -> None:
    found = vectorization.parse(
        "4:45: missed: couldn't vectorize loop\n"
        "4:45: missed: not vectorized: loop nest containing two or more consecutive inner loops\n"
        "6:18: missed: couldn't vectorize loop\n"
        "6:18: optimized: loop vectorized using 32 byte vectors\n"
        "6:18: optimized: loop vectorized using 64 byte vectors\n"
        "7:54: missed: couldn't vectorize loop\n"
        "7:54: missed: not vectorized: latch block not empty.\n"
    )
    assert found.metrics() == {
        "loops_vectorized_count": 1.0,
        "loops_not_vectorized_count": 1.0,
        "widest_vector_bytes": 64.0,
    }
    assert found.notes() == ["the loop at line 7 is not vectorized: latch block not empty"]


@pytest.mark.parametrize(
    ("source", "is_by_hand"),
    [
        ("__m512 y = _mm512_fmadd_ps(x, a, b);", True),
        ("_mm_prefetch(p, _MM_HINT_T0); _mm_sfence();", False),
        ("typedef float v8 __attribute__((vector_size(32)));", True),
        ("auto a = vld1q_f32(p);", True),
        ("for (int i = 0; i < n; ++i) my_mm_sum += x[i];", False),
        ("std::vector<int> size;", False),
    ],
)
def test_vectors_by_hand_are_seen(source: str, is_by_hand: bool) -> None:
    assert vectorization.is_by_hand(source) is is_by_hand


@needs_jail
def test_gcc_is_asked_about_the_submissions_own_loops(tmp_path: Path) -> None:
    source = (
        "#include <vector>\n"
        "void f(float* __restrict x, const float* y, int n) {\n"
        "  for (int i = 0; i < n; ++i) x[i] += y[i];\n"
        "  for (int i = 1; i < n; ++i) x[i] = x[i - 1] * x[i];\n"
        "}\n"
    )
    flags = ("-O3", "-shared", "-fPIC")
    recipe = Recipe({"kernel.cpp": source}, "kernel.cpp", DeviceKind.CPU, flags)
    config = SupervisorConfig(cache_folder=tmp_path)
    found = vectorization.look(recipe, config)
    assert found is not None
    assert [place.split(":")[0] for place in found.vectorized] == ["3"]
    assert [place.split(":")[0] for place in found.missed] == ["4"]
    broken = Recipe({"kernel.cpp": "int f("}, "kernel.cpp", DeviceKind.CPU, flags)
    assert vectorization.look(broken, config) is None


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


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tool": "gprof"}, "tool"),
        ({"metrics": {}}, "metrics.compute_throughput_pct"),
        ({"metrics": {**HALVES, "dram_throughput_pct": 100.5}}, "metrics.dram_throughput_pct"),
        (
            {"metrics": {**HALVES, "memory_throughput_pct": float("nan")}},
            "metrics.memory_throughput_pct",
        ),
    ],
)
def test_a_profile_always_has_its_throughputs(changes: dict[str, object], field: str) -> None:
    with pytest.raises(DataError) as caught:
        profile(**changes)
    assert caught.value.field == field


def test_profiles_survive_the_round_trip_and_old_documents_still_decode() -> None:
    whole = profile(kernels=(KernelMetrics(name="k", duration_ns=1.5, metrics={"a_pct": 2.0}),))
    report = BuildReport(
        ok=True, cached=False, duration_s=1.0, log="", command="", compiler="", digest="",
        resources=(KernelResources(name="k", registers=9),),
    )  # fmt: skip
    result = EvaluationResult(
        evaluation_id="1", attempt=1, verdict=Verdict.UNSTABLE, reason="", mode=Mode.PROFILE,
        device="cpu", task="t", task_digest="", solution_digest="", build=report, profile=whole,
    )  # fmt: skip
    document = encode(result)
    assert decode(EvaluationResult, document) == result
    del document["profile"], document["build"]["resources"]
    old = decode(EvaluationResult, document)
    assert old.profile is None
    assert old.build is not None
    assert old.build.resources == ()


FOLDER = Path(__file__).parents[1] / "captured"
ANCHOR = (FOLDER / "ncu_anchor.csv").read_text()  # the anchor kernel, launched twice
TORCH = (FOLDER / "ncu_torch.csv").read_text()  # softmax(x) + x @ x in PyTorch
DURATION = "gpu__time_duration.sum"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def test_launches_are_read_past_what_ncu_says_itself() -> None:
    launches = parse(ANCHOR)
    assert [launch.name for launch in launches] == [
        "anchor_kernel(float *, const float *, int)"
    ] * 2
    assert [launch.duration_ns for launch in launches] == [55136, 55360]
    assert launches[0].raw[SM] == 44.78
    assert complete(launches) == launches


def test_every_metric_that_we_name_is_in_a_real_report() -> None:
    (kernel,) = kernels(parse(ANCHOR))
    assert set(METRICS) | set(LAUNCH_METRICS) <= set(kernel.metrics)
    assert kernel.metrics["block_threads"] == 256
    assert kernel.metrics["theoretical_occupancy_pct"] == 100
    assert kernel.metrics["launches_count"] == 2


def test_kernels_are_weighted_by_their_durations() -> None:
    launches = parse(TORCH)
    durations = [launch.duration_ns for launch in launches]
    mean = sum(one.raw[SM] * one.duration_ns for one in launches) / sum(durations)
    found = total(launches)
    assert found["compute_throughput_pct"] == pytest.approx(mean)
    assert found["kernel_duration_ns"] == sum(durations)
    assert found["launches_count"] == 3
    assert set(THROUGHPUTS) <= set(found)
    assert "block_threads" not in found
    sorted_ = kernels(launches)  # the longest comes first
    longest = [kernel.duration_ns or 0 for kernel in sorted_]
    assert longest == sorted(longest, reverse=True)
    assert "gemm" in sorted_[0].name


def test_the_longest_stalls_are_named_with_their_unit() -> None:
    found = {name: value for name, value in total(parse(ANCHOR)).items() if "stall_" in name}
    assert 0 < len(found) <= STALLS_SHOWN
    assert max(found, key=lambda name: found[name]) == "stall_long_scoreboard_cycles_per_inst"
    assert not any("selected_" in name and "not_selected" not in name for name in found)


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

"""The parts of a profile that need no profiler: rates, occupancy, vectorised loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError, decode, encode
from gpu_runner.data.evaluation import BuildReport, EvaluationResult
from gpu_runner.data.profile import THROUGHPUTS, KernelMetrics, KernelResources, Profile
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from gpu_runner.supervisor.build import vectorization
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device import occupancy
from gpu_runner.supervisor.device.device import Peak
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools import roofline
from gpu_runner.supervisor.tools.ncu import Ncu
from gpu_runner.supervisor.tools.roofline import Timed

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
PEAK = Peak(1e12, {"float32": 10e12})
SMALL = Timed("small", latency_ns=1000.0, bytes=1e5, flops=1e6)
LARGE = Timed("large", latency_ns=8000.0, bytes=4e6, flops=8e6)
HALVES = dict.fromkeys(THROUGHPUTS, 50.0)


def profile(**changes: object) -> Profile:
    known = {"tool": "portable", "reason": "r", "workload": "w", "metrics": HALVES}
    return Profile(**{**known, **changes})  # type: ignore[arg-type]


def test_rates_are_work_over_time_against_the_peak() -> None:
    found = roofline.metrics(LARGE, PEAK, "float32")
    assert found["achieved_bytes_per_s"] == pytest.approx(5e11)
    assert found["dram_throughput_pct"] == found["memory_throughput_pct"] == pytest.approx(50)
    assert found["compute_throughput_pct"] == pytest.approx(10)
    assert found["arithmetic_intensity_flop_per_byte"] == pytest.approx(2)
    assert found["ridge_intensity_flop_per_byte"] == pytest.approx(10)


def test_percentages_are_capped_and_an_unknown_dtype_takes_float32s_rate() -> None:
    fast = Timed("fast", latency_ns=1.0, bytes=1e9, flops=1e9)
    found = roofline.metrics(fast, PEAK, "bfloat16")
    assert [found[name] for name in THROUGHPUTS] == [100.0] * 3


def test_the_largest_workload_has_the_most_operations_then_bytes() -> None:
    assert roofline.largest([SMALL, LARGE]) is LARGE
    without = [Timed("a", 1.0, 5.0, 0.0), Timed("b", 1.0, 9.0, 0.0)]
    assert roofline.largest(without).name == "b"


def test_scaling_is_one_for_proportional_and_zero_for_fixed_times() -> None:
    double = Timed("double", latency_ns=2000.0, bytes=2e5, flops=0.0)
    flat = Timed("flat", latency_ns=1000.0, bytes=2e5, flops=0.0)
    assert roofline.scaling([SMALL, double]) == pytest.approx(1)
    assert roofline.scaling([SMALL, flat]) == pytest.approx(0)
    assert roofline.scaling([SMALL]) is None
    assert "fixed cost" in roofline.notes([SMALL, flat], PEAK, "float32")[-1]


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
    assert occupancy.occupancy_pct(kernel, architecture) == pct
    (found,) = occupancy.estimates((kernel,), architecture)
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
    assert found.notes() == ["the loop at line 7 is not vectorised: latch block not empty"]


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

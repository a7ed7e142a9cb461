"""Feedback tells of listed workloads alone, and keeps within its budgets."""

from __future__ import annotations

from dataclasses import replace

from gpu_runner.data.codec import encode
from gpu_runner.data.evaluation import (
    BuildReport,
    EvaluationResult,
    Measurement,
    Mismatch,
    WorkloadResult,
)
from gpu_runner.data.profile import KernelMetrics, KernelResources, Profile
from gpu_runner.data.symptom import GENERAL, Finding, Symptom
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve.config import ProfileMode
from runs_app.optimiser.evolve.feedback import feedback_of
from runs_app.optimiser.evolve.sections import sections, text_of
from tests.unit.runs_app.optimiser.evolve.driving import a_result

METRICS = {
    "compute_throughput_pct": 12.0,
    "dram_throughput_pct": 71.0,
    "memory_throughput_pct": 74.0,
    "l2_hit_rate_pct": 3.0,
}


def a_build(log: str = "") -> BuildReport:
    used = KernelResources(name="scale<4>", registers=40, shared_bytes=1024, spill_load_bytes=8)
    return BuildReport(
        ok=not log, cached=False, duration_s=1.0, log=log, command="nvcc", compiler="nvcc 13",
        digest="0", resources=(used,),
    )  # fmt: skip


def a_full_result() -> EvaluationResult:
    """Correct, with baselines, a profile, and a hidden workload named secret."""
    measured = Measurement(time_ns=900.0, low_ns=880.0, high_ns=950.0, calls=9)
    result = a_result(1000.0, mode=Mode.PROFILE)
    public = replace(
        result.workloads[0],
        baselines={"eager": Measurement(time_ns=4e3, low_ns=4e3, high_ns=4e3, calls=9)},
    )
    hidden = WorkloadResult(
        name="secret", parameters={"n": 777}, hidden=True, measurement=measured, floor_ns=1.0
    )
    profile = Profile(
        tool="ncu", reason="", workload="n1024", metrics=METRICS, notes=("The tail is short.",),
        kernels=(KernelMetrics(name="scale<4>", duration_ns=800.0),),
    )  # fmt: skip
    return replace(
        result, workloads=(public, hidden), speedups={"eager": 4.0, "best": 4.0},
        unlisted_speedups={"eager": 7.77}, build=a_build(), profile=profile, output="n = 777",
    )  # fmt: skip


def text(result: EvaluationResult, mode: ProfileMode = ProfileMode.FILTERED) -> str:
    return text_of(sections(feedback_of(result), mode, "memory_bandwidth"))


def test_nothing_of_a_hidden_workload_is_left() -> None:
    result = a_full_result()
    like = Finding(symptom=Symptom.TAIL, text="the last 777 elements")
    wrong = Mismatch(workload="secret", output="y", reason="off by 777", findings=(like,))
    assert result.profile is not None
    spied = replace(result, mismatch=wrong, profile=replace(result.profile, workload="secret"))
    for told in (result, spied):
        assert "secret" not in str(encode(feedback_of(told)))
        assert "777" not in str(encode(feedback_of(told)))
        assert "7.77" not in text(told, ProfileMode.FULL)
    assert feedback_of(spied).profile_tool == ""
    assert feedback_of(spied).mismatch is None


def test_times_against_baseline_and_floor() -> None:
    shown = text(a_full_result())
    assert "Overall: 1.00 us ± 1.0%" in shown
    assert "Speedup against baselines: 4× eager\n" in shown  # "best" is no other
    line = next(line for line in shown.splitlines() if line.startswith("- n1024"))
    assert "(n=1024): 1.00 us ± 1.0%; fastest baseline 4.00 us" in line
    assert "limit 0.10 us, and the time is 10.0× that" in line
    assert "scale<4>: 40 registers a thread, 1024 bytes of static shared memory" in shown
    assert "8 bytes of spills" in shown


def test_errors_show_log_or_element() -> None:
    broken = replace(
        a_result(None, verdict=Verdict.COMPILE_ERROR), build=a_build("error: no such name")
    )
    assert "### Compiler report\nerror: no such name" in text(broken)
    mismatch = Mismatch(
        workload="n1024", output="y", reason="off", index=(3, 4), expected=1.5,
        actual=float("nan"), bound=1e-6, wrong_elements=2, elements=9,
        findings=(Finding(symptom=Symptom.SIGN, text=GENERAL[Symptom.SIGN]),),
    )  # fmt: skip
    wrong = replace(a_result(None, verdict=Verdict.WRONG_RESULT), mismatch=mismatch)
    shown = text(wrong)
    assert "At index (3, 4): expected 1.5, got nan, allowed difference 1e-06" in shown
    assert "2 of 9 elements are wrong" in shown
    assert GENERAL[Symptom.SIGN] in shown


def test_a_shape_that_was_drawn_is_told_where_nothing_is_hidden() -> None:
    result = a_full_result()
    public = tuple(workload for workload in result.workloads if not workload.hidden)
    wrong = Mismatch(workload="N=39", output="y", reason="off by 5")
    quick = replace(result, workloads=public, mismatch=wrong)
    told = feedback_of(quick).mismatch
    assert told is not None
    assert told.workload == "N=39"
    assert feedback_of(replace(quick, mode=Mode.RANKED)).mismatch is None

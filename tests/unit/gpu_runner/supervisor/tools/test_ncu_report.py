"""Tables that ncu 2025.3 wrote on an H200, cut to the columns of interest, become metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.profile import THROUGHPUTS
from gpu_runner.supervisor.tools.ncu import complaint
from gpu_runner.supervisor.tools.ncu_report import (
    LAUNCH_METRICS,
    METRICS,
    STALLS_SHOWN,
    Launch,
    complete,
    kernels,
    parse,
    total,
)

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

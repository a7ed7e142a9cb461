"""The page of an evaluation shows the compiler's report of resources, and a profile."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.evaluation import BuildReport
from gpu_runner.data.profile import KernelMetrics, KernelResources, Profile
from gpu_runner.data.verdict import Mode
from runs_app.submitting.profile_page import ProfileView, metric_row, profile_view
from tests import factories

THROUGHPUTS = {
    "compute_throughput_pct": 12.0,
    "dram_throughput_pct": 81.25,
    "memory_throughput_pct": 84.0,
}
COUNTED = Profile(
    tool="ncu",
    reason="",
    workload="n256",
    metrics={**THROUGHPUTS, "l2_hit_rate_pct": 40.0, "max_bandwidth_pct": 77.0,
             "dram_bytes_per_s": 3.9e12, "mem_pipes_busy_pct": 9.0},
    kernels=(
        KernelMetrics(name="reduce<4>(float*)", duration_ns=2500.0,
                      metrics={"dram_throughput_pct": 83.0, "registers_per_thread": 32.0}),
        KernelMetrics(name="finish", metrics={"block_threads": 256.0}),
    ),
    notes=("peaks: the data sheet",),
)  # fmt: skip


def view(profile: Profile) -> ProfileView:
    """What is shown of a profile that went through JSON."""
    shown = profile_view(codec.decode(Profile, codec.encode(profile)))
    assert shown is not None
    return shown


def test_a_suffix_becomes_a_unit() -> None:
    for key, value, label, printed in (
        ("dram_throughput_pct", 81.25, "DRAM throughput", "81.2 %"),
        ("achieved_flop_per_s", 6.69e13, "Achieved arithmetic", "66.9 TFLOP/s"),
        ("peak_bytes_per_s", 4.8e12, "Peak bandwidth", "4.80 TB/s"),
        ("ridge_intensity_flop_per_byte", 13.94, "Ridge intensity", "13.9 FLOP/byte"),
        ("latency_ns", 12_340.0, "Latency", "12.3 µs"),
        ("static_shared_bytes_per_block", 4096.0, "Static shared memory", "4.00 KiB a block"),
        ("spill_load_bytes", 48.0, "Spill load", "48.0 B"),
        ("registers_per_thread", 128.0, "Registers", "128 a thread"),
        ("waves_per_sm", 2.5, "Waves", "2.50 an SM"),
        ("grid_blocks", 65536.0, "Grid blocks", "65,536"),
        ("loops_vectorized_count", 3.0, "Loops vectorized", "3"),
        ("executed_ipc_active_inst_per_cycle", 1.5, "Executed IPC active",
         "1.50 instructions/cycle"),
        ("stall_long_scoreboard_cycles_per_inst", 8.0, "Stall long scoreboard",
         "8.00 cycles/instruction"),
        ("latency_scaling_exponent", 0.98, "Latency scaling exponent", "0.980"),
        ("dram_bytes_per_s", float("inf"), "DRAM bandwidth", "inf"),
    ):  # fmt: skip
        row = metric_row(key, value)
        assert (row.label, row.value) == (label, printed)
    assert profile_view(None) is None


def test_what_speaks_of_the_bottleneck_comes_first_and_nothing_twice() -> None:
    shown = view(COUNTED)
    assert "memory bandwidth" in shown.bottleneck
    assert [row.key for row in shown.main] == [
        *THROUGHPUTS, "max_bandwidth_pct", "mem_pipes_busy_pct",
    ]  # fmt: skip
    assert [row.key for row in shown.others] == ["l2_hit_rate_pct", "dram_bytes_per_s"]


def test_kernels_have_a_cell_for_every_column() -> None:
    shown = view(COUNTED)
    assert shown.columns == ("DRAM", "Registers", "Threads")
    first, second = shown.kernels
    assert (first.time, second.time) == ("2.50 µs", "–")
    assert [cell.value for cell in first.cells] == ["83.0 %", "32", "–"]
    assert [cell.value for cell in second.cells] == ["–", "–", "256"]
    assert [cell.label for cell in second.cells] == list(shown.columns)


def test_the_class_follows_the_throughputs() -> None:
    for compute, memory, words in (
        (31.0, 90.0, "bandwidth"),
        (90.0, 31.0, "arithmetic"),
        (5.0, 53.0, "neither limit"),
        (5.0, 70.0, "uncertain"),
    ):
        metrics = dict(zip(THROUGHPUTS, (compute, memory, memory), strict=True))
        assert words in view(dataclasses.replace(COUNTED, metrics=metrics)).bottleneck


def page(client: Client, **result: Any) -> str:
    """Text of the page of an evaluation in the mode profile."""
    evaluation = factories.make_finished_evaluation(mode=Mode.PROFILE.value, result=result)
    return client.get(f"/submissions/{evaluation.submission_id}/").content.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs")
def test_the_page_shows_resources_and_profile(client: Client) -> None:
    build = BuildReport(
        ok=True, cached=False, duration_s=0.5, log="", command="nvcc", compiler="nvcc 13",
        digest="0" * 64,
        resources=(
            KernelResources(name="tile<float>", registers=255, shared_bytes=4096,
                            spill_store_bytes=48, spill_load_bytes=64),
            KernelResources(name="finish", registers=16),
        ),
    )  # fmt: skip
    portable = dataclasses.replace(COUNTED, tool="portable", reason="ncu is not installed")
    text = page(client, build=build, profile=portable)
    for part in ("tile&lt;float&gt;", "255", "4.00 KiB", "48.0 B · 64.0 B", "none"):
        assert part in text
    bare = page(client)
    assert ("h-profile" in bare, "Resources of the kernels" in bare) == (False, False)
    for part in ("ncu is not installed", "81.2 %", "3.90 TB/s", "reduce&lt;4&gt;", "data sheet"):
        assert part in text


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs")
def test_the_form_offers_every_mode_and_begins_with_quick(client: Client) -> None:
    factories.make_task_version()
    client.force_login(factories.make_user(username="ada"))
    text = client.get("/submit/").content.decode()
    for mode in set(Mode) - {Mode.AUDIT}:
        assert f'name="mode" value="{mode.value}"' in text
    assert text.count(" checked><span>") == 1
    assert 'value="quick" checked' in text
    form = {
        "task": "scale", "direction": "forward", "device": "cpu", "mode": "profile",
        "source": factories.SOURCE, "written_by": "person",
    }  # fmt: skip
    answer = client.post("/submit/", form, follow=True)
    assert '<span class="tag">profile</span>' in answer.content.decode()

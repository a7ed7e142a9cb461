"""What a strong model missed in prompts about a GPU, and in those of tasks from elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_runner.data.environment import Environment
from gpu_runner.data.formats import built_in_tasks
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language
from runs_app.core.profile.diagnosis import throughput_line
from runs_app.core.profile.hardware import compiler_of
from runs_app.optimiser.evolve.brief import Figures, briefing, values_text
from runs_app.optimiser.evolve.config import BY_TENSORS, KnownTimes
from runs_app.optimiser.evolve.prompts import common, load, render, sample_text
from runs_app.optimiser.evolve.reference import description_for, files_for
from runs_app.optimiser.evolve.sections import metric_lines, micros
from tests.unit.runs_app.optimiser.evolve.driving import a_problem
from tests.unit.runs_app.optimiser.evolve.test_brief import GPU

CUDA = {"language": Language.CUDA, "device_kind": DeviceKind.CUDA}
EXPORTS = "The extension exports `{}(x)`, called with what the model passes."


def said(abi: Abi) -> str:
    problem = a_problem(abi=abi, **CUDA)
    asked = load("evolve").placeholders - common(problem).keys()
    return render("evolve", problem, **dict.fromkeys(asked, "...")).messages[1].content


@pytest.mark.parametrize("abi", [Abi.C, Abi.TORCH])
def test_a_prompt_says_what_is_timed_and_what_is_allowed(abi: Abi) -> None:
    text = said(abi)
    assert "with the gaps between launches" in text
    assert "Cooperative launches, clusters of blocks" in text
    assert "a `__device__` " in text.lower()
    assert "parts on tensor cores may keep the bound" in text


def test_a_forward_prompt_of_two_files_has_one() -> None:
    files = {"func_forward.py": "f", "func_backward.py": "b", "kernels/naive.cu": "k"}
    assert list(files_for(files, Direction.FORWARD)) == ["func_forward.py", "kernels/naive.cu"]
    assert "func_forward.py" not in files_for(files, Direction.BACKWARD)
    assert files_for({"func_backward.py": "b"}, Direction.FORWARD) == {"func_backward.py": "b"}
    told = "\n\n".join(("A norm.", EXPORTS.format("forward"), EXPORTS.format("backward")))
    assert "backward" not in description_for(told, Direction.FORWARD)
    assert "`forward(x)`" not in description_for(told, Direction.BACKWARD)
    assert description_for(told, Direction.FORWARD).startswith("A norm.\n\nThe extension exports")


def test_answers_that_are_asked_for_at_once_are_told_apart() -> None:
    texts = [sample_text("proposal", number, 3) for number in (1, 2, 3)]
    assert len(set(texts)) == 3
    assert "believe in most" in texts[0]
    assert sample_text("candidate", 1, 1) == ""
    mends = [sample_text("candidate", number, 3, mends=True) for number in (1, 2)]
    assert "change nothing else" in mends[0]
    assert "most obvious idea" not in mends[1]


def test_a_limit_that_may_be_beaten_is_not_called_physical() -> None:
    known = (KnownTimes(workload="a", limit_by="arithmetic", limit_ns=1.0),)
    problem = a_problem(known=known, floor_ns=1000.0, **CUDA)
    assert (
        "- limit of the device's memory and of its units for float32: 1.00 us"
        in common(problem)["goal"]
    )
    bound = replace(problem, known=(replace(known[0], limit_by="memory"),))
    assert "- physical limit of the device: 1.00 us" in common(bound)["goal"]


def test_an_unknown_amount_of_work_is_no_figure_of_a_profile() -> None:
    shown = metric_lines({"achieved_flop_per_s": 0.0, "dram_throughput_pct": 0.0})
    assert shown == ["- dram_throughput_pct: 0"]


def test_other_values_are_named() -> None:
    text = values_text(task("rms_norm"), DeviceKind.CUDA, Direction.FORWARD)
    assert "ones whose mean is far from zero" in text
    assert text.startswith(" Other values are: ")


def task(name: str) -> Task:
    return next(each for each in built_in_tasks() if each.name == name)


def test_a_task_without_a_formula_of_its_work_has_a_limit_by_its_tensors() -> None:
    plain = replace(task("rms_norm"), work={})
    sizes = {"n65536": 3350.0 * 80}
    figures = Figures(environment=GPU, tensor_bytes=sizes)
    told = briefing(plain, DeviceKind.CUDA, Direction.FORWARD, figures)
    limits = {each.workload: (each.limit_ns, each.limit_by) for each in told.known}
    assert limits["n65536"] == (pytest.approx(80.0), BY_TENSORS)
    assert limits["n64"] == (None, "")
    assert "no formula of its work" in told.limit_source
    unknown = briefing(plain, DeviceKind.CUDA, Direction.FORWARD, Figures(tensor_bytes=sizes))
    assert unknown.limit_source == ""


def test_a_limit_by_arithmetic_may_be_beaten_in_parts_alone() -> None:
    known = (
        KnownTimes(workload="a", limit_by="arithmetic", limit_ns=1.0),
        KnownTimes(workload="m", limit_by="memory", limit_ns=1.0),
        KnownTimes(workload="t", limit_by=BY_TENSORS, limit_ns=1.0),
    )
    problem = a_problem(known=known, **CUDA)
    assert [problem.may_beat(each) for each in "amt?"] == [True, False, True, False]
    assert not replace(problem, dtype="bfloat16").may_beat("a")
    assert not replace(problem, device_kind=DeviceKind.CPU).may_beat("a")


def test_what_binds_on_a_gpu_is_said() -> None:
    floors = {"m64_n2048_k4096": 16_050.0}
    told = briefing(
        task("matrix_mul"),
        DeviceKind.CUDA,
        Direction.FORWARD,
        Figures(environment=GPU, floors_ns=floors),
    )
    assert {each.workload: each.limit_by for each in told.known}["m64_n2048_k4096"] == "arithmetic"


def test_figures_say_what_they_mean() -> None:
    assert micros(0.31) == "0.00031 us"
    assert micros(256_800) == "256.80 us"
    metrics = {"compute_throughput_pct": 35.18, "dram_throughput_pct": 4.0}
    assert throughput_line(metrics) == ""
    metrics["memory_throughput_pct"] = 60.0
    assert throughput_line(metrics).endswith("compute 35.2 %, dram 4 %, memory 60 %")
    assert (
        compiler_of(Environment(compiler="Build cuda_13.0.r13.0/compiler.36424714_0"))
        == "nvcc 13.0"
    )
    assert compiler_of(Environment(compiler="g++ 12.2.0")) == "g++ 12.2.0"

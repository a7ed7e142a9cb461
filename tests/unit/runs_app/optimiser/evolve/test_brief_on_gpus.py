"""What a strong model missed in prompts about a GPU, and in those of tasks from elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_runner.data.environment import Environment
from gpu_runner.data.formats import built_in_tasks
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Direction, Language
from runs_app.core.profile.diagnosis import throughput_line
from runs_app.core.profile.hardware import compiler_of
from runs_app.optimiser.evolve.brief import Figures, briefing, values_text
from runs_app.optimiser.evolve.config import BY_TENSORS, KnownTimes
from runs_app.optimiser.evolve.prompts import common, sample_text
from runs_app.optimiser.evolve.reference import description_for, files_for
from runs_app.optimiser.evolve.sections import metric_lines, micros
from tests.unit.runs_app.optimiser.evolve.driving import a_problem
from tests.unit.runs_app.optimiser.evolve.test_brief import GPU

CUDA = {"language": Language.CUDA, "device_kind": DeviceKind.CUDA}
EXPORTS = "The extension exports `{}(x)`, called with what the model passes."


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
    assert len({sample_text("proposal", number, 3) for number in (1, 2, 3)}) == 3
    assert len({sample_text("candidate", number, 3, mends=True) for number in (1, 2, 3)}) == 3
    assert sample_text("candidate", 1, 1) == ""


def test_a_limit_by_arithmetic_may_be_beaten_in_parts_alone_and_is_not_called_physical() -> None:
    limits = {"a": "arithmetic", "m": "memory", "t": BY_TENSORS}
    known = tuple(KnownTimes(workload=n, limit_by=by, limit_ns=1.0) for n, by in limits.items())
    problem = a_problem(known=known, floor_ns=1000.0, **CUDA)
    assert [problem.may_beat(each) for each in "amt?"] == [True, False, True, False]
    assert not replace(problem, dtype="bfloat16").may_beat("a")
    assert not replace(problem, device_kind=DeviceKind.CPU).may_beat("a")
    assert "physical" not in common(replace(problem, known=known[:1]))["goal"]
    bound = replace(problem, known=known[1:2])
    assert "- physical limit of the device: 1.00 us" in common(bound)["goal"]


def task(name: str) -> Task:
    return next(each for each in built_in_tasks() if each.name == name)


def test_what_binds_is_told_by_tensors_where_a_task_has_no_formula_of_its_work() -> None:
    plain = replace(task("rms_norm"), work={})
    sizes = {"n65536": 3350.0 * 80}
    figures = Figures(environment=GPU, tensor_bytes=sizes)
    told = briefing(plain, DeviceKind.CUDA, Direction.FORWARD, figures)
    limits = {each.workload: (each.limit_ns, each.limit_by) for each in told.known}
    assert limits["n65536"] == (pytest.approx(80.0), BY_TENSORS)
    assert limits["n64"] == (None, "")
    assert told.limit_source
    unknown = briefing(plain, DeviceKind.CUDA, Direction.FORWARD, Figures(tensor_bytes=sizes))
    assert unknown.limit_source == ""
    floors = Figures(environment=GPU, floors_ns={"m64_n2048_k4096": 16_050.0})
    told = briefing(task("matrix_mul"), DeviceKind.CUDA, Direction.FORWARD, floors)
    assert {each.workload: each.limit_by for each in told.known}["m64_n2048_k4096"] == "arithmetic"
    text = values_text(task("rms_norm"), DeviceKind.CUDA, Direction.FORWARD)
    assert text.startswith(" Other values are: ")


def test_figures_say_what_they_mean() -> None:
    assert micros(0.31) == "0.00031 us"
    assert micros(256_800) == "256.80 us"
    metrics = {"compute_throughput_pct": 35.18, "dram_throughput_pct": 4.0}
    assert throughput_line(metrics) == ""
    metrics["memory_throughput_pct"] = 60.0
    assert throughput_line(metrics).endswith("compute 35.2 %, dram 4 %, memory 60 %")
    unknown = metric_lines({"achieved_flop_per_s": 0.0, "dram_throughput_pct": 0.0})
    assert unknown == ["- dram_throughput_pct: 0"]
    nvcc = "Build cuda_13.0.r13.0/compiler.36424714_0"
    compilers = [compiler_of(Environment(compiler=told)) for told in (nvcc, "g++ 12.2.0")]
    assert compilers == ["nvcc 13.0", "g++ 12.2.0"]

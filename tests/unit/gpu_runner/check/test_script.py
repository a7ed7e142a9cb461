"""A script becomes a task of its reference and modules; what a comparison of them says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gpu_runner.check.checking import Bound, Checked, Ratio
from gpu_runner.check.command import WHY, document_of, text_of
from gpu_runner.check.script import SIZE, Script, read_script
from gpu_runner.data.baselines import BaselineReport
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationResult, Mismatch
from gpu_runner.data.symptom import GENERAL, Finding
from gpu_runner.data.task import KINDS_OF_VALUES, Values
from gpu_runner.data.verdict import DeviceKind, Language, Mode, Verdict
from gpu_runner.supervisor.report import describe

SCRIPT = '''"""Softmax."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

SCALE = math.pi
sizes = [128, 4096]


def scaled(x):
    return x * SCALE


def inputs(n):
    return torch.randn(64, n), -1


def ref(x, dim=-1):
    return F.softmax(scaled(x), dim)


def helper(x):
    return x.exp()


def kernel(x, dim=-1):
    y = helper(x * SCALE)
    return y / y.sum(dim, keepdim=True)


def kernel_other(x, dim=-1):
    return torch.softmax(x * SCALE, dim)


if __name__ == "__main__":
    print(kernel(*inputs(128)))
'''


def read(folder: Path, text: str = SCRIPT, *sizes: int, has_gpu: bool = False) -> Script:
    path = folder / "mine.py"
    path.write_text(text)
    return read_script(path, sizes, has_gpu=has_gpu)


def test_a_workload_for_each_size_and_a_module_for_each_kernel(tmp_path: Path) -> None:
    script = read(tmp_path)
    assert [w.parameters for w in script.task.workloads] == [{SIZE: 128}, {SIZE: 4096}]
    assert list(script.kernels) == ["kernel", "kernel_other"]
    assert script.kind is DeviceKind.CPU
    assert read(tmp_path, has_gpu=True).kind is DeviceKind.CUDA


def test_the_reference_has_what_it_needs_and_no_kernel(tmp_path: Path) -> None:
    """An edit of a kernel must not be another task, whose baselines nobody knows."""
    ((_, problem),) = read(tmp_path).task.files.items()
    for name in ("scaled", "SCALE", "import math", "def ref"):
        assert name in problem
    for name in ("def kernel", "helper", "__main__"):
        assert name not in problem
    edited = SCRIPT.replace("x.exp()", "torch.exp(x)")
    assert read(tmp_path, edited).task.digest() == read(tmp_path).task.digest()
    assert (
        read(tmp_path, SCRIPT.replace("* SCALE", "/ SCALE", 1)).task.digest()
        != read(tmp_path).task.digest()
    )


def test_a_kernels_lines_keep_their_numbers(tmp_path: Path) -> None:
    source = read(tmp_path).kernels["kernel"].source
    ast.parse(source)
    line = "    y = helper(x * SCALE)"
    assert source.splitlines().index(line) == SCRIPT.splitlines().index(line)
    assert "def ref" not in source
    assert "def inputs" not in source
    assert source.rstrip().endswith("forward = kernel")


@pytest.mark.parametrize(
    ("text", "sizes", "found"),
    [
        (SCRIPT, (7, 9, 7), [7, 9]),
        (SCRIPT.replace("sizes = [128, 4096]\n", "").replace("(n)", "(n=512)", 1), (), [512]),
        (SCRIPT.replace("sizes = [128, 4096]", "N = 1 << 9\nsizes = [N, 4 * N]"), (), [512, 2048]),
        (SCRIPT.replace("(n)", "()", 1).replace("64, n", "64, 32"), (), [None]),
    ],
)
def test_where_sizes_come_from(
    tmp_path: Path, text: str, sizes: tuple[int, ...], found: list[int | None]
) -> None:
    workloads = read(tmp_path, text, *sizes).task.workloads
    assert [w.parameters.get(SIZE) for w in workloads] == found


def test_sources_beside_it_are_kernels_too(tmp_path: Path) -> None:
    (tmp_path / "mine.cpp").write_text("int one;")
    (tmp_path / "mine.cu").write_text("int one;")
    here, on_gpu = read(tmp_path), read(tmp_path, has_gpu=True)
    assert here.kernels["mine.cpp"].language is Language.CPP
    assert set(on_gpu.kernels) - set(here.kernels) == {"mine.cu"}


def test_a_cuda_source_alone_is_refused_without_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text("int one;")
    alone = SCRIPT.replace("def kernel", "def other")
    assert list(read(tmp_path, alone, has_gpu=True).kernels) == ["mine.cu"]
    with pytest.raises(DataError, match=r"mine\.cu runs only on a GPU") as raised:
        read(tmp_path, alone)
    assert raised.value.field == "device"


def test_what_a_grid_launches_is_no_kernel_to_call(tmp_path: Path) -> None:
    launched = SCRIPT.replace("def kernel(", "@triton.jit\ndef kernel(")
    assert list(read(tmp_path, launched).kernels) == ["kernel_other"]
    alone = launched.replace("def kernel_other", "def other")
    with pytest.raises(DataError, match=r"a kernel\(\) that launches kernel\(\)"):
        read(tmp_path, alone)
    callable_too = SCRIPT.replace("def kernel(", "@torch.compile(dynamic=False)\ndef kernel(")
    assert list(read(tmp_path, callable_too).kernels) == ["kernel", "kernel_other"]


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        (("def ref", "def reference"), "mine.py", "ref()"),
        (("def inputs", "def make"), "mine.py", "inputs()"),
        (("sizes = [128, 4096]", "sizes = range(9)"), "size", "line 11"),
        (("sizes = [128, 4096]", ""), "size", "--size"),
        (("def ref(x, dim=-1)", "def ref(*all)"), "ref", "have named arguments"),
        (("F.softmax(", "F.softmax(x.half() + "), "ref", "uses half, but inputs() doesn't"),
        (
            ("torch.randn(64, n), -1", "torch.zeros(n).half(), torch.zeros(n).bfloat16()"),
            "inputs",
            "uses bfloat16 and float16: choose one type",
        ),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, change: tuple[str, str], field: str, reason: str
) -> None:
    with pytest.raises(DataError) as raised:
        read(tmp_path, SCRIPT.replace(*change))
    assert raised.value.field == field
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        ("torch.randn(64, n)", "float32"),
        ("torch.randn(64, n).half()", "float16"),
        ("torch.randn(64, n, dtype=NARROW)", "bfloat16"),
    ],
)
def test_a_script_computes_in_the_type_of_its_inputs(tmp_path: Path, made: str, dtype: str) -> None:
    text = SCRIPT.replace("torch.randn(64, n)", made)
    task = read(tmp_path, text.replace("SCALE =", "NARROW = torch.bfloat16\nSCALE =")).task
    assert task.dtype == dtype


NOISE = [1.0, 1.01, 0.99, 1.02, 0.98]


def test_the_same_kernel_is_no_difference() -> None:
    ratio = Ratio.of([100 * n for n in NOISE], [100 * n for n in reversed(NOISE)])
    assert ratio.low < 1 < ratio.high


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_difference_beyond_the_noise_is_one(factor: float) -> None:
    ratio = Ratio.of([100 * factor * n for n in NOISE], [100 * n for n in reversed(NOISE)])
    assert ratio.value == pytest.approx(factor)
    assert (ratio.low > 1) == (factor > 1)
    assert (ratio.high < 1) == (factor < 1)


def test_a_ratio_is_that_of_the_times_it_comes_with() -> None:
    ratio = Ratio.of([100, 104, 96], [120, 150, 130])
    assert ratio.value == pytest.approx(ratio.old_ns / ratio.new_ns)


def test_an_answer_says_which_values_were_not_tried(tmp_path: Path) -> None:
    task = read(tmp_path).task
    assert {workload.values for workload in task.workloads} == {Values.DRAWN}
    baselines = BaselineReport(task_digest=task.digest())
    checked = Checked(task=task, device="cpu", bound=Bound(), baselines=baselines, results={})
    told = document_of(checked)["values"]
    assert KINDS_OF_VALUES[Values.LARGE] in told["not_tried"]
    assert KINDS_OF_VALUES[Values.DRAWN] not in told["not_tried"]
    [line] = [line for line in text_of(checked).splitlines() if line.startswith("values: ")]
    assert all(words in line for words in (*told["tried"], *told["not_tried"]))


def test_a_cause_is_told_once(tmp_path: Path) -> None:
    task, (told, other) = read(tmp_path).task, list(GENERAL)[:2]
    findings = tuple(Finding(symptom=each, text=GENERAL[each]) for each in (told, other))
    result = EvaluationResult(
        evaluation_id="",
        attempt=1,
        verdict=Verdict.WRONG_RESULT,
        reason=f"'out' is wrong: {GENERAL[told]}",
        mode=Mode.QUICK,
        device="cpu",
        task=task.name,
        task_digest=task.digest(),
        solution_digest="",
        mismatch=Mismatch(workload="128", output="out", reason="", findings=findings),
    )
    baselines = BaselineReport(task_digest=task.digest())
    results = {"kernel": result}
    checked = Checked(task=task, device="cpu", bound=Bound(9), baselines=baselines, results=results)
    for text in (text_of(checked), describe(result)):
        assert [text.count(GENERAL[each]) for each in (told, other)] == [1, 1]
    assert WHY not in text_of(checked)  # nothing was timed


def test_a_bound_is_proven_by_several_ways_that_all_pass() -> None:
    assert Bound(ways=5).is_proven
    assert not Bound(ways=2).is_proven
    assert not Bound(ways=5, failed=("in pairs",)).is_proven
    assert not Bound(reason="the reference is random").is_proven

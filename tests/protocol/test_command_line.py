"""The command line runs the whole protocol with no site and no Redis, and keeps its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_runner.__main__ import main
from gpu_runner.data.codec import SCHEMA_VERSION, decode
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.verdict import Abi, Language, Verdict
from gpu_runner.supervisor import jail

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
SOFTMAX = catalog_folder() / "softmax" / "kernels"


def shipped() -> list[tuple[str, str]]:
    tasks = [load_task(path.parent) for path in sorted(catalog_folder().glob("*/task.toml"))]
    return [
        (task.name, kernel.path)
        for task in tasks
        for kernel in task.kernels
        if task.abi is Abi.C and kernel.language is Language.CPP
    ]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def evaluate(*arguments: str, cache: Path) -> int:
    try:
        return main(["evaluate", "--cache", str(cache), *arguments])
    except SystemExit as stop:  # argparse's own
        return int(stop.code or 0)


@needs_jail
@pytest.mark.parametrize(("task", "path"), shipped())
def test_shipped_kernel_is_correct(task: str, path: str, cache: Path, tmp_path: Path) -> None:
    kernel = str(catalog_folder() / task / path)
    out = tmp_path / "result.json"
    arguments = ["--task", task, "--kernel", kernel, "--device", "cpu", "--mode", "test"]
    assert evaluate(*arguments, "--json", str(out), cache=cache) == 0
    result = decode(EvaluationResult, json.loads(out.read_text()))
    assert result.verdict is Verdict.CORRECT
    assert result.schema_version == SCHEMA_VERSION


@needs_jail
def test_result_is_complete_enough_to_redo_the_statistics(cache: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    kernel = str(SOFTMAX / "good.cpp")
    status = evaluate("--task", "softmax", "--kernel", kernel, "--json", str(out), cache=cache)
    result = decode(EvaluationResult, json.loads(out.read_text()))
    assert status == (0 if result.verdict is Verdict.CORRECT else 1)  # a loaded host may be noisy
    assert result.verdict in (Verdict.CORRECT, Verdict.UNSTABLE)
    for workload in result.workloads:
        (run,) = workload.processes
        assert workload.measurement is not None
        assert len(run.times_ns) == len(run.seeds) == workload.measurement.calls
        assert len(set(run.seeds)) == len(run.seeds)
        assert set(run.verified) <= set(range(len(run.seeds)))
        assert len(run.verified) >= 2
        assert workload.errors
    assert {stage.stage for stage in result.stages} >= {"build", "prepare", "measure", "verify"}
    assert {"device_name", "torch", "compiler", "jail", "oracle"} <= result.environment.keys()
    assert result.build is not None


@needs_jail
def test_wrong_kernel_exits_with_one_and_prints_the_first_wrong_element(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "wrong.cpp"
    kernel.write_text(
        'extern "C" void softmax(float* out, const float* in, int N, int C) {'
        " for (int i = 0; i < N * C; ++i) out[i] = 0.5f; }"
    )
    assert evaluate("--task", "softmax", "--kernel", str(kernel), cache=cache) == 1
    printed = capsys.readouterr().out
    assert "WRONG_RESULT" in printed
    assert "first wrong element: out[0, 0] is 0.5" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--task", "softmax"], "--kernel"),
        (["--task", "no_such_task", "--kernel", str(SOFTMAX / "good.cpp")], "no_such_task"),
        (["--task", "softmax", "--kernel", "/no/such/file.cpp"], "/no/such/file.cpp"),
        (["--task", "softmax", "--kernel", str(SOFTMAX.parent / "task.toml")], "neither .cu nor"),
        (["--task", "softmax", "--kernel", "x.cpp", "--device", "tpu"], "tpu"),
        (
            ["--task", "softmax", "--kernel", str(SOFTMAX / "good.cpp"), "--direction", "backward"],
            "direction",
        ),
    ],
)
def test_misuse_exits_with_two_and_says_what_is_wrong(
    arguments: list[str], words: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(*arguments, cache=cache) == 2
    assert words in capsys.readouterr().err


def test_doctor_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor"])
    printed = capsys.readouterr().out
    assert status == (0 if not jail.probe() else 2)
    for name in ("jail", "g++", "torch", "headers", "cpu", "nvcc", "gpu"):
        assert f" {name}" in printed

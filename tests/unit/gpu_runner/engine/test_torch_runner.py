"""The torch runner as a process: baselines and an extension, under the wire's protocol."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi
from gpu_runner.data.wire import Done, ErrorCode, Failed
from gpu_runner.supervisor.device.toolchain import TORCH_HEADERS
from tests.unit.gpu_runner.engine.conftest import Start
from tests.unit.gpu_runner.engine.stub import Evaluation, RunnerProcess, make_task, rows_task

NAME = "kbench_test_extension"
SOURCE = Path(__file__).with_name("extension.cpp")

MODES_REFERENCE = """
import torch
def make_inputs(N, mode):
    return {"a": torch.randn(N, 8), "pair": (torch.randn(N, 8), 2.0), "mode": mode}
def forward_fn(a, pair, mode):
    return a + pair[0] * pair[1]
"""


def run_call(evaluation: Evaluation, runner: RunnerProcess, seed: int, shift: int = 256) -> Done:
    """A call whose outputs were poisoned before."""
    call = evaluation.call(seed, shift)
    low = call.inputs_low
    evaluation.inputs.map[low : low + 64] = os.urandom(64)  # a guard band
    evaluation.outputs.map[:] = os.urandom(len(evaluation.outputs.map))
    poison = evaluation.outputs.map[:]
    done = runner.call(call)
    assert isinstance(done, Done), done
    assert done.call_id == call.call_id
    cursor = 0
    for place, entry in zip(evaluation.places, evaluation.described["outputs"], strict=True):
        assert evaluation.outputs.map[cursor:place] == poison[cursor:place]
        cursor = place + entry["nbytes"]
    assert evaluation.outputs.map[cursor:] == poison[cursor:]
    return done


def ready(runner: RunnerProcess) -> float:
    overhead = runner.read()
    assert isinstance(overhead, float), overhead
    return overhead


def assert_right(answer: dict[str, Any]) -> None:
    assert answer["ok"], answer
    assert [output["mismatch"] for output in answer["outputs"]] == [None] * len(answer["outputs"])


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_eager_baseline(start: Start, support: Path, device: str, direction: str) -> None:
    evaluation = start(rows_task(), device)
    evaluation.describe(direction=direction)
    runner = evaluation.runner("baseline", "eager", direction, str(support))
    assert 0 <= ready(runner) < 50_000
    assert isinstance(runner.set_up(evaluation.setup()), float)
    for seed in range(5):
        done = run_call(evaluation, runner, seed, shift=256 * (seed + 1))
        assert 500 < done.time_ns < 1e9
        for record, entry in zip(done.outputs, evaluation.described["outputs"], strict=True):
            assert record.dtype == entry["dtype"]
            assert list(record.shape) == entry["shape"]
            assert list(record.strides) == entry["strides"]
            assert record.nbytes == entry["nbytes"]
        assert_right(evaluation.take_and_verify(seed))
    assert runner.end() == 0


WIDE_REFERENCE = """
import torch
def make_inputs(N):
    return {"a": torch.randn(N, 8)}
def forward_fn(a):
    return a.float().t() if a.dtype is torch.bfloat16 else a.t()
"""


def test_c_abi_baseline_stores_its_output_as_the_signature_has_it(
    start: Start, support: Path
) -> None:
    task = make_task(
        WIDE_REFERENCE,
        {"N": 16},
        Abi.C,
        signature="void turned(const __nv_bfloat16* a, __nv_bfloat16* out, int N)",
        dtype="bfloat16",
    )
    evaluation = start(task)
    evaluation.describe()
    runner = evaluation.runner("baseline", "eager", "forward", str(support))
    ready(runner)
    runner.set_up(evaluation.setup())
    [record] = run_call(evaluation, runner, 3).outputs
    assert (record.dtype, record.strides) == ("bfloat16", (16, 1))
    assert_right(evaluation.take_and_verify(3))
    assert runner.end() == 0


def test_a_baseline_that_fails_says_why(start: Start, support: Path) -> None:
    task = rows_task()
    evaluation = start(task)
    evaluation.describe()
    setup = evaluation.setup()
    setup["task"]["files"]["reference.py"] += "\nforward_fn = lambda input, gain, shift: 1 / 0\n"
    runner = evaluation.runner("baseline", "eager", "forward", str(support))
    ready(runner)
    failed = runner.set_up(setup)
    assert failed == Failed(ErrorCode.EXCEPTION, "ZeroDivisionError: division by zero")
    assert runner.close() == 1


def test_no_such_extension(start: Start, support: Path, tmp_path: Path) -> None:
    path = tmp_path / "nothing.so"
    path.write_bytes(b"no library")
    runner = start(rows_task()).runner("extension", str(path), "nothing", str(support))
    ready(runner)  # the clock was measured before the extension was loaded
    failed = runner.set_up({})  # it is loaded for the first request
    assert isinstance(failed, Failed)
    assert failed.code is ErrorCode.SYMBOL
    assert runner.close() == 1


def test_the_runner_ends_when_the_supervisor_does(start: Start, support: Path) -> None:
    runner = start(rows_task()).runner("baseline", "eager", "forward", str(support))
    ready(runner)
    assert runner.close() == 3


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PyTorch extension whose `forward` misbehaves as its last argument asks."""
    compiler = shutil.which("g++")
    assert compiler is not None
    root = Path(torch.__file__).parent
    target = tmp_path_factory.mktemp("extension") / f"{NAME}.so"
    includes = [TORCH_HEADERS, root / "include", sysconfig.get_paths()["include"]]
    command = [compiler, "-std=c++20", "-O0", "-fPIC", "-shared", f"-DTORCH_EXTENSION_NAME={NAME}"]
    command += [f"-I{path}" for path in includes]
    libraries = [f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch_python"]
    subprocess.run([*command, str(SOURCE), "-o", str(target), *libraries], check=True)
    return target


@pytest.mark.slow
@pytest.mark.sampled(3)  # one of each code; each imports PyTorch
@pytest.mark.parametrize(
    ("mode", "code", "text"),
    [
        ("throw", ErrorCode.EXCEPTION, "RuntimeError: a message of the kernel"),
        ("sparse", ErrorCode.SHAPE, "layout torch.sparse_coo"),
        ("bad_alloc", ErrorCode.MEMORY, ""),
        ("mutate", ErrorCode.INPUT_WRITE, "wrote to a read-only input"),
    ],
)
def test_an_extension_that_fails(
    start: Start, support: Path, extension: Path, mode: str, code: ErrorCode, text: str
) -> None:
    evaluation = start(make_task(MODES_REFERENCE, {"N": 16, "mode": mode}))
    evaluation.describe()
    runner = evaluation.runner("extension", str(extension), NAME, str(support))
    ready(runner)
    runner.set_up(evaluation.setup())
    failed = runner.call(evaluation.call(1))
    assert isinstance(failed, Failed), failed
    assert failed.code is code
    assert text in failed.text
    assert "Exception raised from" not in failed.text
    assert runner.close() == 1


OTHER_OUTPUTS = {
    "transposed": ("float32", (8, 16), (1, 8)),
    "strided": ("float32", (16, 8), (1, 16)),
    "double": ("float64", (16, 8), (8, 1)),
    "short": ("float32", (15, 8), (8, 1)),
}


@pytest.mark.slow
def test_an_extension_may_have_other_outputs_from_workload_to_workload(
    start: Start, support: Path, extension: Path
) -> None:
    workloads = tuple(
        Workload(name=mode, parameters={"N": 16, "mode": mode}) for mode in OTHER_OUTPUTS
    )
    evaluation = start(make_task(MODES_REFERENCE, {}, workloads=workloads))
    runner = evaluation.runner("extension", str(extension), NAME, str(support))
    ready(runner)
    for mode in OTHER_OUTPUTS:
        evaluation.describe(mode)
        assert isinstance(runner.set_up(evaluation.setup()), float)
    for index, mode in reversed(list(enumerate(OTHER_OUTPUTS))):
        evaluation.describe(mode)
        evaluation.outputs.map[:] = os.urandom(len(evaluation.outputs.map))
        before = evaluation.outputs.map[:]
        done = runner.call(evaluation.call(1, setup=index))
        assert isinstance(done, Done), done
        (record,) = done.outputs
        assert (record.dtype, record.shape, record.strides) == OTHER_OUTPUTS[mode]
        if mode == "strided":
            assert_right(evaluation.take_and_verify(1))
        elif mode != "transposed":
            assert evaluation.outputs.map[:] == before
    assert runner.end() == 0

"""Tasks over integers and floats of eight bits: what kernels see of them, and what is judged."""

from __future__ import annotations

from pathlib import Path

import torch

from gpu_runner.data.task import Task, Tolerance, Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.engine.problem.problem import in_dtype, in_float64, load_problem
from gpu_runner.engine.soundness.soundness import Soundness
from tests.unit.gpu_runner.engine.conftest import Start
from tests.unit.gpu_runner.engine.stub import make_task

REFERENCE = """
import torch

def make_inputs(n):
    return {
        "codes": torch.randint(-127, 128, (n, n), dtype=torch.int8),
        "numbers": torch.randn(n).to(torch.float8_e4m3fn),
        "scale": torch.rand(1) + 1,
    }

def forward_fn(codes, numbers, scale):
    products = codes.to(scale.dtype) @ (numbers.to(scale.dtype) * scale)
    return products, products > 0
"""
SIGNATURE = (
    "void f(const int8_t* codes, const __nv_fp8_e4m3* numbers, const float* scale,"
    " __nv_bfloat16* out, bool* positive, int n)"
)


def small_task() -> Task:
    return make_task(
        REFERENCE,
        {"n": 9},
        Abi.C,
        signature=SIGNATURE,
        dtype="float8_e4m3fn",
        tolerance=Tolerance(constant=2.5, growth=0.0),
    )


def test_numbers_of_eight_bits_are_never_cast() -> None:
    drawn = [torch.ones(2, dtype=torch.float8_e4m3fn), torch.ones(2), torch.ones(2).char()]
    assert [t.dtype for t in in_dtype(drawn, "bfloat16")] == [
        torch.float8_e4m3fn, torch.bfloat16, torch.int8,
    ]  # fmt: skip
    assert in_dtype(drawn, "float8_e5m2")[1].dtype is torch.float32
    assert in_dtype(drawn, "int8")[1].dtype is torch.float32
    assert [t.dtype for t in in_float64(drawn)] == [torch.float64, torch.float64, torch.int8]


def test_a_kernel_sees_and_writes_what_its_signature_says(start: Start) -> None:
    evaluation = start(small_task())
    described = evaluation.describe()
    dtypes = [entry["dtype"] for entry in described["arguments"]]
    assert dtypes == ["int8", "float8_e4m3fn", "float32", "bfloat16", "bool", "int32"]
    assert [entry["nbytes"] for entry in described["arguments"][:5]] == [81, 9, 4, 18, 9]
    offsets = evaluation.fill(3)
    codes, numbers, scale = (
        evaluation.inputs.tensor(offset, entry)
        for entry, offset in zip(evaluation.read, offsets, strict=True)
    )
    products = codes.double() @ (numbers.double() * scale)
    for place, entry, tensor in zip(
        evaluation.places, described["outputs"], (products, products > 0), strict=True
    ):
        evaluation.outputs.tensor(place, entry).copy_(tensor)
    assert [o["mismatch"] for o in evaluation.take_and_verify(3)["outputs"]] == [None, None]
    evaluation.outputs.map[evaluation.places[1]] = 0x70  # as poison, which is no truth value
    assert evaluation.take_and_verify(3)["outputs"][1]["mismatch"]["index"] == [0]


def test_wrong_kernels_over_small_types_fail(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(REFERENCE)
    asked = Soundness(load_problem(small_task(), tmp_path), "cpu")
    workload = Workload(name="only", parameters={"n": 9})
    failed, passed = set[str](), set[str]()
    for seed in range(4):
        answer = asked.step(workload, Direction.FORWARD, seed, ())
        assert {name: why for name, (_, why) in answer["honest"].items() if why} == {}
        for name, state, _ in answer["mutants"]:
            (failed if state == "failed" else passed).add(name)
    wanted = {"inputs in FP8", "the other sign in output 1", "zeros in output 2", "mul 1: removed"}
    assert wanted <= failed
    assert passed <= failed

"""Families of values and small types: what kernels see of them, and what is judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gpu_runner.data.formats import catalog_folder, load_task
from gpu_runner.data.task import Task, Tolerance, Values, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.engine.problem.problem import in_dtype, in_float64, load_problem
from gpu_runner.engine.problem.values import integer_range, integers, varied
from gpu_runner.engine.soundness.soundness import Soundness
from tests.unit.gpu_runner.engine.conftest import Start
from tests.unit.gpu_runner.engine.stub import make_task


def task(name: str = "matrix_mul") -> Task:
    return load_task(catalog_folder() / name)


def workload(values: Values) -> Workload:
    return Workload(name="w", parameters={"M": 4, "N": 4, "K": 64}, values=values)


def change(tensor: Tensor, values: Values, seed: int = 1) -> Tensor:
    result: Tensor = varied(tensor, task(), workload(values), seed)
    return result


DRAWN = torch.randn(16, 256, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("values", Values)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (5, 7), (2, 3, 4, 5)])
def test_a_family_keeps_shape_and_dtype_and_is_the_seed_s(
    values: Values, shape: tuple[int, ...]
) -> None:
    drawn = torch.full(shape, 0.75)
    first, again = change(drawn, values), change(drawn, values)
    assert first.shape == shape
    assert first.dtype == drawn.dtype
    assert torch.isfinite(first).all()
    assert torch.equal(first, again)
    assert torch.equal(drawn, torch.full(shape, 0.75))


def test_scales() -> None:
    assert torch.equal(change(DRAWN, Values.LARGE), DRAWN * 1000)
    assert torch.equal(change(DRAWN, Values.SMALL), DRAWN / 1000)
    heavy = (change(DRAWN, Values.HEAVY) != DRAWN).float().mean()  # a few elements
    assert 0.005 < heavy < 0.05
    assert not torch.equal(change(DRAWN, Values.HEAVY, 1), change(DRAWN, Values.HEAVY, 2))
    whole = torch.arange(3)
    assert varied((whole, "x", 2, None), task(), workload(Values.LARGE), 1) == (whole, "x", 2, None)


def test_near_inputs_of_one_shape_stay_as_far_apart_as_they_were() -> None:
    """One may be the other with noise: a loss of them would be that of a few outliers."""
    pair = (DRAWN, DRAWN + 0.25)
    for seed in range(20):
        first, second = varied(pair, task(), workload(Values.NEAR), seed)
        assert not torch.equal(first, DRAWN)
        assert torch.allclose(second - first, torch.tensor(0.25))


def test_near_inputs_differ_in_one_place_of_some_tensors() -> None:
    pair = (DRAWN, DRAWN[:, :16].contiguous())
    unchanged = [0, 0]
    for seed in range(40):
        near = varied(pair, task(), workload(Values.NEAR), seed)
        places = [(old != new).flatten().nonzero() for old, new in zip(pair, near, strict=True)]
        assert any(len(each) for each in places)
        for index, (each, old) in enumerate(zip(places, pair, strict=True)):
            unchanged[index] += len(each) == 0
            if len(each):
                assert int(each[-1] - each[0]) < old.numel() / 8
    assert all(0 < count < 30 for count in unchanged)
    assert torch.equal(change(torch.ones(1), Values.NEAR), torch.full((1,), 0.75))


def test_a_shift_is_each_row_s_own() -> None:
    uneven = DRAWN * torch.logspace(-3, 3, 16)[:, None]
    shifted = change(uneven, Values.SHIFTED)
    ratio = shifted.mean(1) / shifted.std(1)
    assert ((ratio > 3.5) & (ratio < 4.5)).all()


def test_structure_repeats_rows_and_leaves_some_zero() -> None:
    structured = change(DRAWN, Values.STRUCTURED)
    assert torch.equal(structured[1], structured[0])
    assert torch.equal(structured[2], DRAWN[2])
    assert (structured[3] == 0).all()
    vector = change(DRAWN.reshape(-1), Values.STRUCTURED)
    assert torch.equal(vector[32:64], vector[:32])
    assert (vector[96:128] == 0).all()


@pytest.mark.parametrize(("dtype", "terms"), [("float32", 64), ("float32", 1000), ("bfloat16", 16)])
def test_sums_of_integer_products_are_exact_in_any_order(dtype: str, terms: int) -> None:
    wanted = getattr(torch, dtype)
    largest = integer_range(dtype, terms)
    a = integers(torch.randn(50, terms, generator=torch.Generator().manual_seed(2)), largest)
    b = integers(torch.randn(50, terms, generator=torch.Generator().manual_seed(3)), largest)
    assert torch.equal(a.to(wanted).double(), a.double())
    assert 1 <= a.abs().max() <= largest
    total = torch.zeros(50, dtype=wanted)
    for column in range(terms):
        total = total + a[:, column].to(wanted) * b[:, column].to(wanted)
    assert torch.equal(total.double(), (a.double() * b.double()).sum(1))


def test_only_listed_inputs_change_and_the_gradient_does() -> None:
    base = load_task(catalog_folder() / "layernorm")
    drawn = next(w for w in base.workloads_for(DeviceKind.CPU, Direction.BACKWARD, hidden=False))
    problem = load_problem(base, catalog_folder() / "layernorm")
    problem._module.VARIED = ("x",)  # type: ignore[attr-defined]
    large = replace(drawn, name="large", values=Values.LARGE)
    plain = problem.draw(drawn, Direction.BACKWARD, 3, "cpu").values
    changed = problem.draw(large, Direction.BACKWARD, 3, "cpu").values
    assert torch.equal(changed["weight"], plain["weight"])
    torch.testing.assert_close(changed["x"], plain["x"] * 1000)
    torch.testing.assert_close(changed["grad_output"], plain["grad_output"] * 1000)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_floats_of_eight_bits_stay_in_their_range(dtype: torch.dtype) -> None:
    drawn = (DRAWN * 100).to(dtype)
    for values in Values:
        changed = change(drawn, values)
        assert changed.dtype is dtype
        assert torch.isfinite(changed.float()).all()
        same = torch.equal(changed.view(torch.uint8), drawn.view(torch.uint8))
        kept = (Values.DRAWN, Values.HARD, Values.SMALL, Values.LARGE)
        assert same is (values in kept)


def test_integers_of_a_task_with_small_types_fit_its_output() -> None:
    signature = "void f(const int8_t* x, const float* scales, __nv_bfloat16* out, int M)"
    small = replace(task(), dtype="int8", signature=signature, tolerance=Tolerance())
    assert varied(DRAWN, small, workload(Values.INTEGERS), 1).abs().max() <= 2


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
    wanted = {
        "inputs in FP8",
        "the opposite sign in output 1",
        "zeros in output 2",
        "mul 1: removed",
    }
    assert wanted <= failed
    assert passed <= failed

"""Tasks as data, with their C signatures and the arithmetic over a workload's parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formulas import evaluate
from gpu_runner.data.signature import Role, Signature
from gpu_runner.data.task import Task, TaskFormat, Tolerance, Work, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction


def make_task(**changes: Any) -> Task:
    fields: dict[str, Any] = {
        "name": "softmax",
        "title": "Softmax",
        "format": TaskFormat.KBENCH,
        "abi": Abi.C,
        "signature": "void softmax(float* out, const float* input, int N, int C)",
        "workloads": (
            Workload(name="small", parameters={"N": 2, "C": 8}),
            Workload(name="gpu", parameters={"N": 64, "C": 512}, devices=(DeviceKind.CUDA,)),
            Workload(name="secret", parameters={"N": 3, "C": 7}, hidden=True),
        ),
        "files": {"reference.py": "def make_inputs(N, C): ..."},
        "tolerance": Tolerance(reduction="C"),
        "work": {Direction.FORWARD: Work(flops="5 * N * C", bytes="8 * N * C")},
    }
    return Task(**(fields | changes))


def test_the_digest_changes_with_anything_that_changes_a_score() -> None:
    task = make_task()
    others = [
        replace(task, files={"reference.py": "def make_inputs(N, C): pass"}),
        replace(task, tolerance=Tolerance(reduction="C", growth=5.0)),
        replace(task, workloads=task.workloads[:1]),
        replace(task, work={}),
    ]
    assert len({task.digest(), *(other.digest() for other in others)}) == 5


@pytest.mark.parametrize(
    ("dtype", "output", "real"),
    [
        ("bfloat16", "float", "bfloat16"),
        ("int8", "__nv_bfloat16", "bfloat16"),
        ("float8_e4m3fn", "float", "float32"),
        ("float8_e4m3fn", "__nv_fp8_e4m3", "float8_e4m3fn"),
        ("int32", "int", ""),
    ],
)
def test_what_kernels_hand_out_says_how_exact_it_may_be(dtype: str, output: str, real: str) -> None:
    signature = f"void softmax(int8_t* codes, {output}* out, const int8_t* input, int N, int C)"
    assert make_task(dtype=dtype, signature=signature).real_dtype == real


def test_workloads_by_device_and_visibility() -> None:
    task = make_task()

    def names(kind: DeviceKind, *, hidden: bool) -> list[str]:
        return [w.name for w in task.workloads_for(kind, Direction.FORWARD, hidden=hidden)]

    assert names(DeviceKind.CUDA, hidden=False) == ["small", "gpu"]
    assert names(DeviceKind.CPU, hidden=False) == ["small"]
    assert names(DeviceKind.CPU, hidden=True) == ["small", "secret"]
    only = Workload(name="b", parameters={"N": 1, "C": 1}, directions=(Direction.BACKWARD,))
    task = make_task(workloads=(only,))
    assert task.workloads_for(DeviceKind.CPU, Direction.FORWARD, hidden=True) == ()
    assert task.workloads_for(DeviceKind.CPU, Direction.BACKWARD, hidden=False) == (only,)


def test_cost_and_reduction_length() -> None:
    task = make_task()
    workload = task.workloads[0]
    cost = task.cost(workload, Direction.FORWARD)
    assert cost is not None
    assert (cost.flops, cost.bytes, cost.weight) == (80.0, 128.0, 80.0)
    assert task.cost(workload, Direction.BACKWARD) is None
    assert task.reduction_length(workload) == 8.0
    work = {Direction.FORWARD: Work(flops="5 * N * C", bytes="8 * N * C", weight="N")}
    weighed = make_task(work=work).cost(workload, Direction.FORWARD)
    assert weighed is not None
    assert weighed.weight == 2.0


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"signature": "int softmax(float* out)"}, "signature"),
        ({"inout": ("nothing",)}, "inout"),
        ({"directions": (Direction.FORWARD, Direction.BACKWARD)}, "directions"),
        ({"workloads": ()}, "workloads"),
        (
            {"workloads": (Workload(name="a", parameters={"N": 1, "C": 1}),) * 2},
            "workloads[1].name",
        ),
        ({"workloads": (Workload(name="a", parameters={"N": 1}),)}, "tolerance.reduction"),
        ({"tolerance": Tolerance(reduction="C +")}, "tolerance.reduction"),
        ({"work": {Direction.FORWARD: Work(flops="M", bytes="1")}}, "work.forward.flops"),
        ({"work": {Direction.FORWARD: Work(flops="1", bytes="-1")}}, "work.forward.bytes"),
        (
            {"work": {Direction.FORWARD: Work(flops="1", bytes="1", weight="x")}},
            "work.forward.weight",
        ),
    ],
)
def test_a_task_that_cannot_be_evaluated_cannot_be_built(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(DataError) as caught:
        make_task(**changes)
    assert caught.value.field == field


def test_roles_follow_from_pointers_and_const() -> None:
    signature = Signature.parse("void softmax(float* out, const float* input, int N, int64_t C)")
    assert signature.symbol == "softmax"
    assert [(p.name, p.role, p.dtype) for p in signature.parameters] == [
        ("out", Role.OUTPUT, "float32"),
        ("input", Role.INPUT, "float32"),
        ("N", Role.SCALAR, "int32"),
        ("C", Role.SCALAR, "int64"),
    ]
    assert [p.name for p in signature.outputs] == ["out"]


def test_a_pointer_can_be_marked_as_read_and_written() -> None:
    text = "void step(double* state, const double *force, float* energy)"
    signature = Signature.parse(text, ("state",))
    assert [p.role for p in signature.parameters] == [Role.INOUT, Role.INPUT, Role.OUTPUT]
    assert [p.name for p in signature.outputs] == ["state", "energy"]


@pytest.mark.parametrize(
    ("text", "inout", "field", "reason"),
    [
        ("int f(float* x)", (), "signature", "is not `void NAME(...)`"),
        ("void f()", (), "signature", "cannot parse the parameter"),
        ("void f(out, const float* x)", (), "signature", "'out' needs both a type and a name"),
        ("void f(float** x)", (), "signature", "cannot parse the parameter"),
        ("void f(float* x, unsigned int n)", (), "signature", "cannot parse the parameter"),
        ("void f(float* x, char n)", (), "signature", "'char' is not one of"),
        ("void f(float* x, __nv_fp8_e4m3 y)", (), "signature", "'y' must be a pointer or a float"),
        ("void f(float* x, int x)", (), "signature", "two parameters have the same name"),
        ("void f(const float* x, int n)", (), "signature", "has no output"),
        ("void f(float* x)", ("y",), "inout", "'y' is not in the signature"),
    ],
)
def test_a_mistake_is_named(text: str, inout: tuple[str, ...], field: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        Signature.parse(text, inout)
    assert caught.value.field == field
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * M * N * K", 2.0 * 3 * 4 * 5),
        ("(M + N) / 2", 3.5),
        ("K // 2 + K % 2", 3.0),
        ("M ** 2", 9.0),
        ("min(M, N, K) + max(M, 7)", 10.0),
        ("sqrt(N) + log2(8) + ceil(2.5)", 8.0),
        ("eps * 4", 2.0),
        ("0", 0.0),
    ],
)
def test_value(text: str, value: float) -> None:
    assert evaluate(text, {"M": 3, "N": 4, "K": 5, "eps": 0.5}) == value


NO_ARITHMETIC = (
    "__import__('os').system('true')|M.bit_length()|[1, 2][0]|lambda: 1|M if N else K|'a' * 3"
    "|(lambda: 1)()|max(M, key=1)|open('x')|M @ N|M & 2|(M := 3)|f'{M}'|True and 1|1 < 2"
)


@pytest.mark.parametrize("text", NO_ARITHMETIC.split("|"))
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        evaluate(text, {"M": 3, "N": 4, "K": 5}, "work.flops")
    assert caught.value.field == "work.flops"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot evaluate"),
        ("1 / 0", "cannot evaluate"),
        ("sqrt(-1)", "cannot evaluate"),
        ("-1", "not a finite number >= 0"),
        ("1e308 * 10", "not a finite number >= 0"),
        ("X", "'X' is not a numeric parameter of the workload"),
        ("10 ** 17", "exponent above 16"),
        ("2.5 ** 400", "exponent above 16"),
        ("1 << 1000000", "shift above 64"),
    ],
)
def test_a_bad_value_says_why(text: str, reason: str) -> None:
    parameters: dict[str, Any] = {"text": "12"}
    with pytest.raises(DataError) as caught:
        evaluate(text, parameters, "tolerance.reduction")
    assert reason in caught.value.reason

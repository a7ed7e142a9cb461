"""Tasks as data: what cannot be built, and what follows from a workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_runner.data.codec import DataError
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

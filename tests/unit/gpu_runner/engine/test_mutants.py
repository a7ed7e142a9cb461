"""Mutants: what is derived from a reference, what fails, and what its arithmetic is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gpu_runner.data.task import Task, TaskFormat, Tolerance, Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.engine.problem.problem import load_problem
from gpu_runner.engine.soundness.filters import count_flops
from gpu_runner.engine.soundness.mutants import Call, mutants_of, tried
from gpu_runner.engine.soundness.operations import Interpreter
from gpu_runner.engine.soundness.soundness import Soundness, honest_kernels
from gpu_runner.engine.soundness.wild_indices import refuse_wild_indices

REFERENCE = """
import torch

def make_inputs(n):
    return {"x": torch.randn(n, n), "w": torch.randn(n, n), "b": torch.randn(n) + 1}

def forward_fn(x, w, b):
    return torch.relu((x @ w).clone() * 1.0 + b)

def forward_scale(x, w, b):
    return torch.sqrt((x * x) @ (w * w)) + (x @ w).abs() + b.abs()
"""


def problem(
    folder: Path,
    text: str = REFERENCE,
    constant: float = 32.0,
    dtype: str = "float32",
    growth: float = 1.0,
) -> Soundness:
    (folder / "reference.py").write_text(text)
    task = Task(
        name="toy",
        title="Toy",
        format=TaskFormat.KBENCH,
        abi=Abi.TORCH,
        workloads=(Workload(name="n9", parameters={"n": 9}),),
        files={"reference.py": text},
        dtype=dtype,
        tolerance=Tolerance(reduction="n", constant=constant, growth=growth),
    )
    return Soundness(load_problem(task, folder), "cpu")


def first_call(soundness: Soundness) -> Call:
    workload = soundness._problem.task.workloads[0]
    return Call(soundness._problem, workload, Direction.FORWARD, 1, "cpu")


def states(soundness: Soundness, seeds: int = 3) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    workload = soundness._problem.task.workloads[0]
    for seed in range(seeds):
        for name, state, _ in soundness.step(workload, Direction.FORWARD, seed, ())["mutants"]:
            found.setdefault(name, set()).add(state)
    return found


def test_wrong_kernels_fail_and_what_changes_nothing_is_told_apart(tmp_path: Path) -> None:
    found = states(problem(tmp_path))
    assert {name for name, seen in found.items() if seen == {"same"}} == {"mul 1: removed"}
    assert all("failed" in seen for name, seen in found.items() if name != "mul 1: removed")
    expected = {
        "zeros", "the mean of the result everywhere", "the opposite sign", "transposed",
        "the input x echoed", "the result of an earlier call", "last element left out",
        "only the last row", "inputs in TF32", "products in BF16", "everything in FP16",
        "mm 1: second half of the terms left out", "mm 1: last term left out",
        "mm 1: only the last term", "relu 1: removed", "add 1: removed",
    }  # fmt: skip
    assert expected <= set(found)


def test_bounds_and_dtypes_decide_what_survives(tmp_path: Path) -> None:
    loose = states(problem(tmp_path, constant=3e5))
    assert "passed" in loose["inputs in BF16"]
    assert "failed" not in loose["inputs in TF32"]
    assert "failed" in loose["zeros"]
    found = states(problem(tmp_path, dtype="bfloat16", constant=2.0), seeds=1)
    narrow = {"everything in FP8", "inputs in FP8", "products in FP8"}
    assert {name for name in found if name.endswith(("FP8", "FP16", "BF16", "TF32"))} == narrow
    assert all(found[name] == {"failed"} for name in narrow)
    tight = problem(tmp_path, constant=1e-3, growth=0.0)
    workload = tight._problem.task.workloads[0]
    error, reason = tight.step(workload, Direction.FORWARD, 1, ())["honest"]["reference"]
    assert error > 1
    assert reason.startswith("output[")
    assert reason.endswith("of 81 are wrong")


IN_SLICES = """
import torch

def make_inputs(n):
    return {"x": torch.rand(n, n) + 1}

def forward_fn(x):
    rows = []
    for row in x:
        rows.append((row * 2).softmax(0) + row)
    total = x
    for _ in range(6):
        total = total * x
    return torch.stack(rows) + total
"""


def test_operations_of_a_loop_are_edited_in_its_first_passes(tmp_path: Path) -> None:
    edits = first_call(problem(tmp_path, IN_SLICES)).trace().edits
    numbers = {name: {e.number for e in edits if e.operation == name} for name in ("exp", "mul")}
    assert numbers["exp"] == {1, 2, 3, 4}  # of nine
    assert numbers["mul"] == {1, 2, 3, 4, *range(10, 16)}  # nothing is done between the last six


def test_settled_mutants_are_left_out_and_honest_kernels_are_right(tmp_path: Path) -> None:
    soundness = problem(tmp_path)
    workload = soundness._problem.task.workloads[0]
    answer = soundness.step(workload, Direction.FORWARD, 1, ("zeros", "ones"))
    assert not {"zeros", "ones"} & {name for name, _, _ in answer["mutants"]}
    assert {"reference", "in parts", "sums one by one"} <= set(answer["honest"])
    assert set(answer["honest"]) <= {"reference", *honest_kernels()}
    assert all(error < 0.5 and not reason for error, reason in answer["honest"].values())
    assert answer["output_bytes"] == 9 * 9 * 4


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return forward_fn(x, w, b)", ""),
        ("return forward_fn(x, w, b) + 1", "output[0, 0]: "),
        ("return forward_fn(x, w, b)[1:]", "ValueError: shapes differ"),
        ("return forward_fn(x, w, b), x", "gives 2 outputs, not 1"),
        ("return x.nowhere", "AttributeError: 'Tensor' object has no attribute 'nowhere'"),
    ],
)
def test_a_baseline_of_its_own_is_judged_like_an_honest_kernel(
    tmp_path: Path, body: str, said: str
) -> None:
    soundness = problem(tmp_path, f"{REFERENCE}\ndef baseline_fn(x, w, b):\n    {body}\n")
    workload = soundness._problem.task.workloads[0]
    error, reason = soundness.step(workload, Direction.FORWARD, 1, ())["honest"]["baseline_fn"]
    assert (error > 1) is bool(said)
    assert reason.startswith(said) if said else not reason


ATTENTION = """
import torch
import torch.nn.functional as F

def make_inputs(n):
    return {"x": torch.randn(1, 2, n, 8), "w": torch.randn(1, 2, n, 8)}

def forward_fn(x, w):
    return F.scaled_dot_product_attention(x, w, w)
"""


def test_fused_attention_is_taken_apart_in_every_dtype(tmp_path: Path) -> None:
    soundness = problem(tmp_path, ATTENTION)
    call = first_call(soundness)
    assert "bmm" in {edit.operation for edit in call.trace().edits}
    narrow = Interpreter()
    call.run(narrow)
    assert set(narrow.edits) == set(call.trace().edits)


AT_0 = torch.ones(1)
WILD = [
    ("gather", (0, torch.tensor([5])), False),
    ("gather", (0, torch.tensor([-1])), False),
    ("index_add", (0, torch.tensor([5]), AT_0), False),
    ("scatter", (0, torch.tensor([-100]), AT_0), False),
    ("take", (torch.tensor([-6]),), False),
    ("index", ([torch.tensor([-6])],), False),
    ("index_put", ([torch.tensor([5])], AT_0), False),
    ("index_fill", (-1, torch.tensor([-6]), 1.0), False),
]
TAME = [
    ("gather", (0, torch.tensor([4])), True),
    ("index", ([torch.tensor([-5])],), True),
    ("index", ([torch.tensor([True, False, True, False, True])],), True),
    ("index_put", ([torch.tensor([], dtype=torch.long)], torch.ones(())), True),
    ("index_fill", (-1, torch.tensor([-5]), 1.0), True),
    ("mul", (2.0,), True),
]


@pytest.mark.parametrize(("name", "rest", "tame"), [*WILD, *TAME])
def test_an_index_outside_is_refused_before_a_device_stumbles_over_it(
    name: str, rest: tuple[object, ...], *, tame: bool
) -> None:
    arguments = (torch.zeros(5), *rest)
    with nullcontext() if tame else pytest.raises((IndexError, RuntimeError)):
        getattr(torch.ops.aten, name)(*arguments)  # a CPU refuses by itself
    with nullcontext() if tame else pytest.raises(IndexError):
        refuse_wild_indices(name, arguments)


SPARSE = {
    "sparse_compressed_tensor": [
        ([0, 1, 2], [0, 2], True),
        ([0, 2, 2], [0, 2], True),
        ([0, 1], [0, 2], False),  # an offset too few
        ([0, 1, 3], [0, 2], False),
        ([1, 1, 2], [0, 2], False),
        ([0, 3, 2], [0, 2], False),
        ([0, 1, 2], [0, 3], False),
        ([0, 1, 2], [-1, 2], False),
    ],
    "_sparse_coo_tensor_with_dims_and_tensors": [
        ([0, 1], [0, 2], True),
        ([0, 2], [0, 2], False),
        ([0, 1], [0, 3], False),
        ([-1, 1], [0, 2], False),
    ],
}


@pytest.mark.parametrize(
    ("name", "first", "second", "right"),
    [(name, *case) for name, cases in SPARSE.items() for case in cases],
)
def test_a_sparse_matrix_has_only_places_of_its_own(
    name: str, first: list[int], second: list[int], *, right: bool
) -> None:
    places, shape = (torch.tensor(first), torch.tensor(second)), (2, 3)
    values = torch.ones(2)
    with nullcontext() if right else pytest.raises(IndexError), Interpreter():
        if name == "sparse_compressed_tensor":
            torch.sparse_csr_tensor(*places, values, shape, check_invariants=False)
        else:
            torch.sparse_coo_tensor(torch.stack(places), values, shape, check_invariants=False)


NORMS = """
import torch
import torch.nn.functional as F

def make_inputs(n):
    return {"x": torch.randn(4, n) + 1, "w": torch.rand(n) + 1, "t": torch.arange(4)}

def forward_fn(x, w, t):
    return F.cross_entropy(F.layer_norm(x, x.shape[1:], w), t, reduction="none")
"""


def test_fused_operations_are_taken_apart(tmp_path: Path) -> None:
    soundness = problem(tmp_path, NORMS)
    call = first_call(soundness)
    trace = Interpreter()
    plain = call.run(trace, exactly=True)
    torch.testing.assert_close(plain, call.expected, rtol=1e-12, atol=1e-12)
    operations = {edit.operation for edit in trace.edits}
    assert {"rsqrt", "exp", "log", "amax", "sum", "gather"} <= operations
    assert not {"native_layer_norm", "_log_softmax", "nll_loss_forward"} & operations


def test_a_mutant_that_makes_no_sense_is_no_mutant(tmp_path: Path) -> None:
    soundness = problem(tmp_path)
    call = first_call(soundness)
    mutant = next(mutants_of(call, None))
    broken = type(mutant)("broken", lambda call, exactly: (torch.zeros(2).reshape(3),))
    assert tried(broken, call) is None


X, Y = torch.rand(8, 16), torch.rand(16, 4)
COMPLEX, ROW = X.to(torch.complex64), torch.tensor([3])
MATRIX = torch.eye(8, 16).to_sparse_csr()
IMAGE, WEIGHT = torch.rand(1, 2, 8, 8), torch.rand(3, 2, 3, 3)


@pytest.mark.parametrize(
    ("function", "flops"),
    [
        (lambda: X + 1, 128),
        (lambda: (X * 2).sum(1), 256),
        (lambda: X @ Y, 2 * 8 * 16 * 4),
        (lambda: torch.nn.functional.gelu(X), 5 * 128),
        (lambda: torch.where(X > 0.5, X, 0.0), 128),
        (lambda: X.index_put((ROW,), X[:1], accumulate=True), 16),
        (lambda: torch.nn.functional.conv2d(IMAGE, WEIGHT), 2 * 3 * 36 * 18),
        (lambda: torch.nn.functional.max_pool2d(IMAGE, 2), 2 * 16 * 4),
        (lambda: torch.zeros(4).index_add(0, torch.arange(4), Y[0]), 4),
        (lambda: MATRIX @ Y, 2 * 8 * 4),
        (lambda: torch.fft.fft(Y[:, 0].to(torch.complex64)), 5 * 16 * 4),
    ],
)
def test_operations_are_counted(function: Callable[[], Tensor], flops: int) -> None:
    assert count_flops(function, ()) == (flops, set())


def test_what_cannot_be_counted_is_named() -> None:
    flops, unknown = count_flops(lambda x: torch.linalg.svdvals(x.sort(1)[0] + 1), (X,))
    assert flops >= 128
    assert "sort" in unknown
    assert len(unknown) == 2
    assert count_flops(X.argmax, ()) == (0, {"argmax"})

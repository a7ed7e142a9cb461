"""Where outputs are wrong, what was never set, and outputs that look like nothing known."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gpu_runner.data.formats import find_task
from gpu_runner.data.symptom import Symptom
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.engine.diagnosis import Case, diagnose
from gpu_runner.engine.oracle.oracle import explain
from gpu_runner.engine.problem.compare import wrong_elements
from gpu_runner.engine.problem.problem import load_problem, write_files
from gpu_runner.engine.soundness.mutants import Call, mutants_of
from tests.unit.gpu_runner.engine.wrong_outputs import (
    FLOATS,
    LIMIT,
    S,
    drawn,
    found,
    partly,
    poison,
    seeded,
    symptoms,
)

# Where


def test_a_wrong_end_a_wrong_block_and_few_wrong_elements() -> None:
    expected, other = drawn(64, 70), drawn(64, 70, seed=6).float()
    mask = torch.zeros(64, 70, dtype=torch.bool)
    mask[:, 64:] = True
    (finding,) = found(partly(expected.float(), other, mask), expected)
    assert finding.symptom is S.TAIL
    assert finding.text.startswith("wrong only in the last 6 columns:")
    mask.zero_()[16:32, 16:32] = True
    assert symptoms(partly(expected.float(), other, mask), expected) == [S.REGION]
    mask.zero_()[[3, 20, 41], [5, 60, 11]] = True
    assert symptoms(partly(expected.float(), other, mask), expected) == [S.SCATTERED]
    zeros = expected.float().flatten()
    zeros[-8:] = 0
    assert symptoms(zeros, expected.flatten()) == [S.ZEROS, S.TAIL]


# Nothing


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(5000,), (64, 64), (8, 8, 9, 10), (5,)])
@pytest.mark.parametrize("size", [0.3, 1.0, 30.0])
def test_a_plainly_wrong_result_looks_like_nothing_known(
    dtype: torch.dtype, shape: tuple[int, ...], size: float
) -> None:
    for seed in range(3):
        expected, other = drawn(*shape, seed=seed), size * drawn(*shape, seed=seed + 50)
        if not dtype.is_floating_point:
            expected, other = (expected * 1000).long(), (other * 1000)
        told = symptoms(other.to(dtype), expected)
        assert told in ([], [S.SLIGHTLY_OFF], [S.LARGE_VALUES]), (seed, told)


def test_noise_wrong_bools_and_a_whole_that_is_off() -> None:
    expected = drawn(4096)
    for size in (3e-2, 3e-5):  # no known precision
        assert symptoms((expected + size * drawn(4096, seed=4)).float(), expected) == []
    assert symptoms(drawn(4096, seed=9) > 0, expected > 0) == []
    assert symptoms(torch.zeros(4096, dtype=torch.bool), expected > 0)[0] is S.ZEROS
    whole = expected * (1 + 22 * torch.finfo(torch.float32).eps)
    assert symptoms(whole.float(), expected) in ([], [S.SLIGHTLY_OFF])


def test_large_outputs_cost_little_more() -> None:
    expected = torch.linspace(-1, 1, 1 << 24, dtype=torch.float64).view(1 << 12, 1 << 12)
    actual = expected.float()
    actual[:, 4000:] += 1
    wrong = wrong_elements(actual, expected, LIMIT)
    began = time.process_time()
    told = diagnose(Case(actual, expected, wrong, factor=20.0))
    assert time.process_time() - began < 20
    assert [each.symptom for each in told] == [S.OFFSET, S.TAIL]


LOOKS = {
    "zeros": {Symptom.ZEROS},
    "the mean of the result everywhere": {Symptom.REPEATED},
    "the other sign": {Symptom.SIGN},
    "half as much": {Symptom.FACTOR},
    "transposed": {Symptom.TRANSPOSED, Symptom.REVERSED},
    "in reverse order": {Symptom.REVERSED, Symptom.PERMUTED},
    "off by one element": {Symptom.SHIFTED},
    "off by one column": {Symptom.SHIFTED},
    "last column left out": {Symptom.ZEROS},
    "the result of an earlier call": {None},
    "products in TF32": {Symptom.LOWER_PRECISION},
    "products in BF16": {Symptom.LOWER_PRECISION},
    "mm 1: second half of the terms left out": {Symptom.PART_MISSING, None},  # behind a relu
    "mm 1: removed": {None},
}
TASKS = {"relu": 9, "matrix_mul": 13, "linear_relu": 11, "rotary_embedding": 9}


def first_findings(name: str) -> dict[str, Symptom | None]:
    """By the name of each wrong kernel, of one call of a task's first workload for a CPU."""
    task = find_task(name)
    workload = next(w for w in task.workloads if not w.hidden and DeviceKind.CPU in w.devices)
    with write_files(task) as folder:
        problem = load_problem(task, Path(folder))
        call, earlier = (
            Call(problem, workload, task.directions[0], seed, "cpu") for seed in (1, 2)
        )
        looks: dict[str, Symptom | None] = {}
        for mutant in mutants_of(call, earlier):
            if mutant.name not in LOOKS:
                continue
            output = mutant.run(call, False)[0].to(call.eager[0].dtype)
            compared = call.compared(0, output)
            if compared.mismatch is not None:
                scale, length = call._scales[0], task.reduction_length(workload)
                found = explain(
                    output, call.expected[0], call._limit, scale, compared.scaled, length
                )
                looks[mutant.name] = found[0].symptom if found else None
    return looks


@pytest.mark.parametrize("name", TASKS)
def test_a_wrong_kernel_looks_like_what_it_is(name: str) -> None:
    looks = first_findings(name)
    assert len(looks) >= TASKS[name]
    wrong = {mutant: look for mutant, look in looks.items() if look not in LOOKS[mutant]}
    assert wrong == {}


# What was never set


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(1000,), (7, 33), (4, 5, 6)])
def test_an_output_that_was_never_written(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    expected = drawn(*shape) if dtype.is_floating_point else (drawn(*shape) * 9).long()
    assert symptoms(poison(shape, dtype), expected) == [S.NEVER_WRITTEN]


def test_a_single_element_that_was_never_written() -> None:
    for seed in range(20):
        assert symptoms(poison((1,), seed=seed), drawn(1)) == [S.NEVER_WRITTEN]
    expected = drawn(1000)  # to which was only added, on a CPU
    findings = found(poison((1000,)) + expected.float(), expected)
    assert [each.symptom for each in findings] == [S.NEVER_WRITTEN]
    assert "added to" in findings[0].text


PARTS: list[tuple[str, tuple[int, ...], Callable[[Tensor], object], str]] = [
    ("tail", (1000,), lambda m: m[900:].fill_(True), "the last 100 elements"),
    ("last element", (1001,), lambda m: m[1000:].fill_(True), "the last element"),
    ("last rows", (50, 20), lambda m: m[47:].fill_(True), "the last 3 rows"),
    ("last columns", (50, 20), lambda m: m[:, 16:].fill_(True), "the last 4 columns"),
    ("flat tail", (50, 20), lambda m: m.view(-1)[333:].fill_(True), "the elements from 333 on"),
    ("odd elements", (1000,), lambda m: m[1::2].fill_(True), "every 2nd of the elements"),
    ("every third row", (60, 20), lambda m: m[2::3].fill_(True), "every 3rd of the rows"),
    (
        "border",
        (50, 20),
        lambda m: (m[48:].fill_(True), m[:, 16:].fill_(True)),
        "rows from 48 on and columns from 16 on",
    ),
    ("block", (64, 64), lambda m: m[16:32, 8:24].fill_(True), "the block [16:32, 8:24]"),
    (
        "some rows",
        (64, 64),
        lambda m: m.index_fill_(0, torch.tensor([3, 4, 9]), True),
        "3 whole rows",
    ),
    ("plane", (4, 6, 8), lambda m: m[:, :, 7].fill_(True), "the last index of dimension 2"),
    (
        "scattered",
        (1000,),
        lambda m: m.index_fill_(0, torch.tensor([3, 70, 500]), True),
        "3 of 1000 elements",
    ),
]


@pytest.mark.parametrize(
    ("shape", "mark", "words"), [p[1:] for p in PARTS], ids=[p[0] for p in PARTS]
)
def test_a_part_that_was_not_written_is_named(
    shape: tuple[int, ...], mark: Callable[[Tensor], object], words: str
) -> None:
    mask = torch.zeros(shape, dtype=torch.bool)
    mark(mask)
    expected = drawn(*shape)
    (finding,) = found(partly(expected.float(), poison(shape), mask), expected)
    assert finding.symptom is S.PARTLY_WRITTEN
    assert finding.text.startswith(f"not written: {words}, where")


def test_what_was_written_is_looked_at_beside_a_part_that_was_not() -> None:
    expected = drawn(1000)
    actual = 2 * expected.float()
    actual[990:] = poison((10,))
    assert symptoms(actual, expected) == [S.PARTLY_WRITTEN, S.FACTOR]


@pytest.mark.parametrize("seed", range(5))
def test_sums_that_began_with_what_the_output_held(seed: int) -> None:
    """FP16 and integers keep what is added; a device makes NaN anew."""
    expected = drawn(4096, seed=seed) * 50
    assert symptoms(poison((4096,), torch.float16, seed) + expected.half(), expected) == [
        S.ACCUMULATED
    ]
    counts = torch.randint(1, 500, (256,), generator=seeded(seed))
    for dtype in (torch.int32, torch.int64):
        held = poison((256,), dtype, seed)
        assert symptoms(held + counts.to(dtype), counts) == [S.ACCUMULATED]
    added = poison((4096,), torch.float32, seed)
    bits = added.view(torch.int32)
    bits[added.isnan()] = 0x7FFFFFFF
    assert symptoms(added, expected) == [S.ACCUMULATED]
    assert symptoms(0.5 * poison((4096,), torch.float32, seed) + 1, expected) == [S.ACCUMULATED]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_beta_of_zero_reads_what_was_never_set(dtype: torch.dtype) -> None:
    expected = drawn(256, 256)
    held = poison((256, 256), dtype)
    actual = expected.to(dtype) + torch.where(held.isnan(), torch.nan, 0.0).to(dtype)
    assert symptoms(actual, expected) == [S.READ_BEFORE_SET]


# Another dtype's layout


@pytest.mark.parametrize("own", FLOATS)
@pytest.mark.parametrize("other", [*FLOATS, torch.int32])
@pytest.mark.parametrize("shape", [(512,), (30, 34)])
def test_an_output_written_as_another_dtype(
    own: torch.dtype, other: torch.dtype, shape: tuple[int, ...]
) -> None:
    if own is other:
        return
    expected = 20 * drawn(*shape)
    written = expected.to(other).view(-1).view(torch.uint8)
    actual = poison(shape, own)
    room = actual.view(-1).view(torch.uint8)
    count = min(room.numel(), written.numel())
    room[:count] = written[:count]
    (finding,) = found(actual, expected)
    assert finding.symptom is S.OTHER_DTYPE
    assert f"right as {str(other)[6:]}" in finding.text

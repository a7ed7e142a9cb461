"""What no wrong kernel of attention or of sparse products gets away with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_runner.data.verdict import Direction
from tests.unit.catalog.judging import Case, cases, drawn_cases, exactly
from tests.unit.catalog.test_tasks import SPARSE

NAMES = ("attention", "attention_bf16")
DIRECTIONS = list(Direction)
Scores = Callable[[Tensor, Tensor], Tensor]
"""Changes scores (batch, heads, queries, keys), given how far each key lies behind its query."""

MASKED: dict[str, Scores] = {
    "no mask": lambda scores, _: scores,
    "the next key as well": lambda scores, behind: scores.masked_fill(behind < -1, -math.inf),
    "without the query's own key": lambda scores, behind: scores.masked_fill(
        (behind <= 0) & (behind != behind.amax(1, keepdim=True)), -math.inf
    ),
    "near keys alone": lambda scores, behind: _causal(scores, behind).masked_fill(
        behind > 20, -math.inf
    ),
    "without the scale": lambda scores, behind: _causal(scores * 4, behind),
}


def _causal(scores: Tensor, behind: Tensor) -> Tensor:
    return scores.masked_fill(behind < 0, -math.inf)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    masked: Scores = _causal,
    tiled: bool = False,
    largest: bool = True,
) -> Tensor:
    """Attention written out; `tiled` gives each head of q the wrong head of k."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat(1, group, 1, 1) if tiled else x.repeat_interleave(group, 1) for x in (k, v))
    positions = torch.arange(q.shape[2])
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[3])
    scores = masked(scores, positions[:, None] - positions)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True) if largest else scores)
    return powers / powers.sum(-1, keepdim=True) @ v


def failing(name: str, direction: Direction, attention: Callable[..., Tensor]) -> list[Case]:
    """The workloads on which a kernel that computes `attention` in float32 fails."""

    def kernel(*arguments: Tensor) -> tuple[Tensor, ...]:
        wide = [argument.float() for argument in arguments]
        if direction is Direction.FORWARD:
            return (attention(*wide),)
        inputs = [argument.requires_grad_() for argument in wide[1:]]
        return torch.autograd.grad(attention(*inputs), inputs, wide[0])

    return [case for case in cases(name, direction=direction) if case.fails(kernel, [3])]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_attention_written_out_in_float32_passes(name: str, direction: Direction) -> None:
    assert failing(name, direction, attend) == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize("masked", MASKED.values(), ids=MASKED)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_wrong_scores_fail(name: str, direction: Direction, masked: Scores) -> None:
    wrong = failing(name, direction, lambda q, k, v: attend(q, k, v, masked=masked))
    assert len(wrong) >= 5


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_wrong_head_of_keys_fails(name: str, direction: Direction) -> None:
    wrong = failing(name, direction, lambda q, k, v: attend(q, k, v, tiled=True))
    heads = [(case.workload.parameters[n] for n in ("num_heads", "num_kv_heads")) for case in wrong]
    assert heads
    assert all(1 < shared < number for number, shared in heads)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_exponentials_of_plain_scores_overflow(name: str, direction: Direction) -> None:
    wrong = failing(name, direction, lambda q, k, v: attend(q, k, v, largest=False))
    assert len(wrong) >= 5


OPERATORS = sorted(name for name in SPARSE if name.startswith("spm"))
PADDED = [name for name in OPERATORS if "_ell" in name]
COORDINATES = [name for name in OPERATORS if "_coo" in name]
NARROW = [name for name in OPERATORS if name.endswith("_bf16")]
SEEDS = [1]
PARTS = 16


def drawn(case: Case) -> dict[str, Any]:
    """The arguments of the reference by name."""
    call = case.draw(SEEDS[0])
    return dict(zip(call.names, call.arguments, strict=True))


def fails(case: Case, **changed: Tensor) -> bool:
    """Does the right result of changed inputs fail as the result of the drawn ones?"""
    arguments = drawn(case) | changed
    result = exactly(case.function())(*arguments.values())
    return not case.passes(result, SEEDS[0])


@pytest.mark.parametrize("case", drawn_cases(*PADDED), ids=str)
def test_a_kernel_that_takes_padding_for_column_zero_fails(case: Case) -> None:
    assert fails(case, col_ids=drawn(case)["col_ids"].clamp(min=0))


@pytest.mark.parametrize("case", drawn_cases(*PADDED), ids=str)
def test_a_kernel_that_stops_at_the_first_padding_fails(case: Case) -> None:
    columns = drawn(case)["col_ids"]
    reached = (columns >= 0).int().cumprod(1).bool()
    if columns.shape[0] > 1:
        assert fails(case, col_ids=torch.where(reached, columns, -1))


@pytest.mark.parametrize("case", drawn_cases(*COORDINATES), ids=str)
def test_elements_come_in_both_orders(case: Case) -> None:
    """So that a kernel that trusts in sorted rows fails, and one that gains by them may."""
    rows = drawn(case)["row_indices"]
    assert bool((rows.diff() >= 0).all()) != bool(case.workload.parameters["shuffled"])


@pytest.mark.sampled(30)
@pytest.mark.parametrize("case", drawn_cases(*OPERATORS), ids=str)
def test_a_kernel_that_leaves_empty_rows_as_they_are_fails(case: Case) -> None:
    arguments = drawn(case)
    ones = {
        name: torch.ones_like(arguments[name]) for name in ("values", "x", "X") if name in arguments
    }
    counts = exactly(case.function())(*(arguments | ones).values())
    result = exactly(case.function())(*arguments.values())
    if (counts == 0).any():
        assert not case.passes(torch.where(counts == 0, 1e-27, result), SEEDS[0])
    else:
        assert case.workload.parameters["rows"] == 1


@pytest.mark.parametrize("name", NARROW)
def test_sums_in_bfloat16_fail(name: str) -> None:
    """The bound is that of one rounding at the end, of a sum that was kept in float32."""
    assert any(not case.passes(_summed_in_bfloat16(case), SEEDS[0]) for case in drawn_cases(name))


def _summed_in_bfloat16(case: Case) -> Tensor:
    """The product in parts, rounded after each: about one element of a short row a part."""
    arguments = drawn(case)
    name = "X" if "X" in arguments else "x"
    total = torch.zeros(())
    for part in range(PARTS):
        only = torch.zeros_like(arguments[name])
        only[part::PARTS] = arguments[name][part::PARTS]
        total = (total + case.function()(*(arguments | {name: only}).values())).bfloat16()
    return total

"""What no wrong kernel of `attention` gets away with: masks, groups of heads, scores, overflow."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gpu_runner.data.verdict import Direction
from tests.unit.catalog.judging import Case, cases

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

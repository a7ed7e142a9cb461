"""Drawn inputs: what a kernel could guess of them, and places that are valid whatever the seed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.catalog.judging import Case, cases
from tests.unit.catalog.test_tasks import NAMES

DRAWS = 24
"""So many that a truth value is hardly ever the same in all of them by chance."""
MOST_KNOWN = 0.02
"""Share of a tensor's elements that may be the same in every draw, or always as the one before."""
ALLOWED = {
    "row_offsets": 0.07,  # one line in sixteen is empty
    "col_offsets": 0.07,
    "col_ids": 0.1,  # the same, and padding behind short rows
    "true_labels": 0.04,  # the first and the last
    "cosines": 0.25,  # position 0, and frequencies that are hardly any
    "sines": 0.07,
    "input": 0.15,  # a histogram's runs, which are long: some repeat in all draws
}
"""Others, by the tensor's name, with the reason."""


def smallest(name: str) -> Case:
    """The smallest public workload of a task."""
    public = [case for case in cases(name) if not case.workload.hidden]
    return min(public, key=lambda case: sum(t.numel() for t in tensors(case, 0).values()))


def tensors(case: Case, seed: int) -> dict[str, Tensor]:
    drawn = case.draw(seed)
    pairs = zip(drawn.names, drawn.arguments, strict=True)
    return {name: value for name, value in pairs if isinstance(value, Tensor)}


def known(draws: list[Tensor]) -> float:
    """The share of elements that are the same in all draws, or equal to the one before in all."""
    flat = torch.stack([each.reshape(-1).double() for each in draws])
    if flat.shape[1] < 1 / MOST_KNOWN:
        return 0.0
    same = (flat == flat[0]).all(0)
    repeats = (flat[:, 1:] == flat[:, :-1]).all(0)
    return max(same.double().mean().item(), repeats.double().mean().item())


@pytest.mark.each_task
@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("_bf16")])
def test_what_stands_where_is_drawn(name: str) -> None:
    case = smallest(name)
    draws = [tensors(case, seed) for seed in range(DRAWS)]
    shares = {each: known([draw[each] for draw in draws]) for each in draws[0]}
    too_many = {n: s for n, s in shares.items() if s > ALLOWED.get(n, MOST_KNOWN)}
    assert too_many == {}


def test_known_places_are_found() -> None:
    draws = [torch.rand(64) for _ in range(DRAWS)]
    assert known(draws) == 0.0
    fixed = [draw.clone().index_fill_(0, torch.arange(0, 64, 8), 0.5) for draw in draws]
    assert known(fixed) == 1 / 8
    repeated = [draw.repeat_interleave(2) for draw in draws]
    assert known(repeated) == pytest.approx(1 / 2, abs=0.01)


SEEDS = range(6)
PAGED = ("mla_decode", "paged_decode_attention")


def drawn(case: Case, seed: int) -> dict[str, Any]:
    call = case.draw(seed)
    return dict(zip(call.names, call.arguments, strict=True))


@pytest.mark.parametrize("case", cases(*PAGED), ids=str)
def test_no_page_is_in_two_sequences(case: Case) -> None:
    parameters = case.workload.parameters
    for seed in SEEDS:
        inputs = drawn(case, seed)
        table, lengths = inputs["page_table"], inputs["lengths"]
        pages = len(inputs["key_cache" if "key_cache" in inputs else "cache"])
        held = -(-lengths // parameters["page_size"])
        assert lengths.min() >= 1
        assert lengths.sum() == parameters["num_tokens"]
        assert held.max() <= table.shape[1]
        assert table.min() >= 0
        assert table.max() < pages
        used = torch.cat([row[:count] for row, count in zip(table, held.tolist(), strict=True)])
        assert len(used.unique()) == len(used)


@pytest.mark.parametrize("name", PAGED)
def test_lengths_differ_widely(name: str) -> None:
    for case in cases(name):
        lengths = drawn(case, 1)["lengths"]
        if len(lengths) > 1:
            assert lengths.max() >= 2 * lengths.min()


@pytest.mark.parametrize("case", cases("moe_grouped_matmul"), ids=str)
def test_every_row_has_one_expert(case: Case) -> None:
    parameters = case.workload.parameters
    for seed in SEEDS:
        offsets = drawn(case, seed)["offsets"]
        counts = offsets.diff()
        assert offsets[0] == 0
        assert offsets[-1] == parameters["num_rows"]
        assert counts.min() >= 0
        assert int((counts == 0).sum()) == parameters["num_idle"]


def test_sizes_that_cannot_be_are_refused() -> None:
    make = cases("moe_grouped_matmul")[0].function().__globals__["make_inputs"]
    with pytest.raises(ValueError, match="3 rows are too few for 4 busy experts"):
        make(3, 5, 1, 8, 8)
    tall = cases("batched_qr")[0].function().__globals__["make_inputs"]
    with pytest.raises(ValueError, match="of 3 rows cannot have 4 independent columns"):
        tall(1, 3, 4, 1.0)

"""Inputs that are places, such as page tables and offsets, are valid whatever the seed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.unit.catalog.judging import Case, cases

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

"""What no wrong kernel of the production tasks gets away with, beside what the reports try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.catalog.judging import Case, cases, exactly

SEED = 3
BLOCK = 64
"""Tokens of a chunk, as `chunked_linear_attention` takes them."""


def drawn(case: Case) -> dict[str, Any]:
    call = case.draw(SEED)
    return dict(zip(call.names, call.arguments, strict=True))


def with_changed(case: Case, **changed: Any) -> Any:
    """What the reference gives of changed inputs."""
    return exactly(case.function())(*(drawn(case) | changed).values())


def refused(name: str, kernel: Callable[[Case], Any]) -> list[Case]:
    """The workloads on which what a kernel gives is wrong."""
    return [case for case in cases(name) if not case.passes(kernel(case), SEED)]


def in_order(case: Case) -> Any:
    """Pages one behind another, whatever the table says."""
    table = drawn(case)["page_table"]
    return with_changed(
        case, page_table=torch.arange(table.numel()).view_as(table) % table.max().clamp(min=1)
    )


def whole_pages(case: Case) -> Any:
    """All slots of the last page, also those behind the last token."""
    size = case.workload.parameters["page_size"]
    return with_changed(case, lengths=-(-drawn(case)["lengths"] // size) * size)


def without_newest(case: Case) -> Any:
    return with_changed(case, lengths=(drawn(case)["lengths"] - 1).clamp(min=1))


PAGED = {"pages in order": in_order, "whole pages": whole_pages, "one token less": without_newest}


@pytest.mark.parametrize("kernel", PAGED.values(), ids=PAGED)
@pytest.mark.parametrize("name", ["mla_decode", "paged_decode_attention"])
def test_attention_to_other_tokens_fails(name: str, kernel: Callable[[Case], Any]) -> None:
    assert len(refused(name, kernel)) >= 5


def test_the_wrong_head_of_keys_fails() -> None:
    def tiled(case: Case) -> Any:
        query = drawn(case)["query"]
        kv_heads = case.workload.parameters["num_kv_heads"]
        turned = query.unflatten(1, (-1, kv_heads)).transpose(1, 2).flatten(1, 2)
        back = with_changed(case, query=turned).unflatten(1, (kv_heads, -1))
        return back.transpose(1, 2).flatten(1, 2)

    shared = [1 < c.workload.parameters["num_kv_heads"] < c.workload.parameters["num_heads"]
              for c in refused("paged_decode_attention", tiled)]  # fmt: skip
    assert len(shared) >= 3
    assert all(shared)


def test_exponentials_of_plain_scores_overflow() -> None:
    def plain(case: Case) -> Tensor:
        x = drawn(case)
        tokens = x["cache"][x["page_table"].long()].flatten(1, 2).float()
        powers = torch.exp(x["query"].float() @ tokens.mT * x["scale"])
        powers[torch.arange(tokens.shape[1]).expand_as(powers) >= x["lengths"][:, None, None]] = 0
        return powers / powers.sum(-1, keepdim=True) @ tokens[..., : x["latent_dim"]]

    assert len(refused("mla_decode", plain)) >= 4


def test_experts_counted_without_idle_ones_fail() -> None:
    def counted(case: Case) -> Any:
        offsets = drawn(case)["offsets"]
        busy = torch.cat((offsets[:1], offsets[1:][offsets.diff() > 0]))
        filled = torch.cat((busy, busy[-1:].expand(len(offsets) - len(busy))))
        return with_changed(case, offsets=filled)

    wrong = refused("moe_grouped_matmul", counted)
    assert {c.workload.parameters["num_idle"] > 0 for c in wrong} == {True}
    assert len(wrong) >= 4


def quantised(case: Case, change: Callable[[dict[str, Tensor]], None]) -> Any:
    """The exact outputs of `add_rms_norm_fp8` by name, changed."""
    found = dict(zip(("residual", "out", "scales"), with_changed(case), strict=True))
    change(found)
    return tuple(found.values())


def cut_off(found: dict[str, Tensor]) -> None:
    """Numbers cut off to three bits behind the first, in place of rounded."""
    mantissa, exponent = torch.frexp(found["out"])
    found["out"] = torch.ldexp((mantissa * 16).trunc() / 16, exponent)


def smaller_scales(found: dict[str, Tensor]) -> None:
    """Scales of powers of two, and numbers that fit them."""
    scales = 2.0 ** found["scales"].log2().ceil()
    found["out"] *= (found["scales"] / scales)[:, None]
    found["scales"] = scales


def other_scales(found: dict[str, Tensor]) -> None:
    """Scales that have nothing to do with the numbers."""
    found["scales"] = torch.zeros_like(found["scales"])


WRONG = {"cut off": cut_off, "powers of two": smaller_scales, "zeros as scales": other_scales}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_other_numbers_or_scales_fail(change: Callable[[dict[str, Tensor]], None]) -> None:
    assert len(refused("add_rms_norm_fp8", lambda case: quantised(case, change))) >= 5


def test_the_residual_stream_has_to_be_updated() -> None:
    def stale(case: Case) -> Any:
        return (drawn(case)["residual"], *with_changed(case)[1:])

    assert len(refused("add_rms_norm_fp8", stale)) == len(cases("add_rms_norm_fp8"))


def narrow(value: Tensor) -> Tensor:
    return value.bfloat16().float()


def test_a_norm_that_rounds_each_step_passes() -> None:
    """As serving engines compute it: the sum, the norm and its product with the weight."""

    def rounded(case: Case) -> tuple[Tensor, Tensor, Tensor]:
        x = drawn(case)
        total = narrow(x["x"].float() + x["residual"].float())
        norm = torch.rsqrt(total.square().mean(-1, keepdim=True) + x["epsilon"])
        found = narrow(narrow(total * norm) * x["weight"].float())
        scales = (found.abs().amax(-1) / 448).clamp(min=1 / (448 * 512))
        return total, found * (1 / scales)[:, None], scales

    assert refused("add_rms_norm_fp8", rounded) == []


def test_weights_rounded_to_bfloat16_pass() -> None:
    """As matrix units take them, before they are divided by their sum."""

    def rounded(case: Case) -> Tensor:
        x = drawn(case)
        tokens = x["cache"][x["page_table"].long()].flatten(1, 2).float()
        scores = x["query"].float() @ tokens.mT * x["scale"]
        behind = torch.arange(tokens.shape[1]) >= x["lengths"][:, None, None]
        scores = scores.masked_fill(behind, -torch.inf)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        sums = narrow(powers) @ tokens[..., : x["latent_dim"]]
        return sums / powers.sum(-1, keepdim=True)

    assert refused("mla_decode", rounded) == []


def by_gram_and_schmidt(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Column by column, each less its parts along the earlier ones."""
    q, n = torch.zeros_like(matrices), matrices.shape[-1]
    r = torch.zeros(len(matrices), n, n)
    for k in range(n):
        column = matrices[..., k]
        r[:, :k, k] = (q[..., :k].mT @ column[..., None])[..., 0]
        column = column - (q[..., :k] @ r[:, :k, k, None])[..., 0]
        r[:, k, k] = column.norm(dim=-1)
        q[..., k] = column / r[:, k, k, None].clamp(min=1e-30)
    return q, r


def by_cholesky(matrices: Tensor) -> tuple[Tensor, Tensor]:
    factors, _ = torch.linalg.cholesky_ex(matrices.mT @ matrices)
    r = factors.mT.triu()
    return torch.linalg.solve_triangular(r, matrices, upper=True, left=False), r


ONLY_FOR_INDEPENDENT = {"Gram and Schmidt": by_gram_and_schmidt, "Cholesky": by_cholesky}


@pytest.mark.parametrize("kernel", ONLY_FOR_INDEPENDENT.values(), ids=ONLY_FOR_INDEPENDENT)
def test_columns_that_are_not_orthonormal_fail(kernel: Callable[[Tensor], Any]) -> None:
    wrong = refused("batched_qr", lambda case: kernel(drawn(case)["matrices"]))
    assert any(case.workload.parameters["condition"] >= 1e6 for case in wrong)


def test_factors_of_any_sign_fail() -> None:
    wrong = refused("batched_qr", lambda case: torch.linalg.qr(drawn(case)["matrices"]))
    assert len(wrong) >= 6


def each_chunk_anew(case: Case) -> Any:
    """Chunks that know nothing of the ones before."""
    x = drawn(case)
    starts = torch.arange(x["log_decay"].shape[1]) % BLOCK == 0
    return with_changed(case, log_decay=torch.where(starts[:, None], -1e4, x["log_decay"]))


def decayed_late(case: Case) -> Any:
    """A token's decay counts from the next token on."""
    return with_changed(case, log_decay=drawn(case)["log_decay"].roll(1, 1))


def factors_apart(case: Case) -> Tensor:
    """exp(sum up to t) times exp(-sum up to s): both leave float32."""
    x = {name: value.float() for name, value in drawn(case).items()}
    since = x["log_decay"].cumsum(1)[..., None]
    q, k, v = (x[n].transpose(1, 2) for n in ("query", "key", "value"))
    up, down = since.exp().transpose(1, 2), (-since).exp().transpose(1, 2)
    return ((q * up) @ (k * down).mT).tril() @ v


LINEAR = {"each chunk anew": each_chunk_anew, "decayed late": decayed_late}


@pytest.mark.parametrize("kernel", LINEAR.values(), ids=LINEAR)
def test_linear_attention_with_another_state_fails(kernel: Callable[[Case], Any]) -> None:
    assert len(refused("chunked_linear_attention", kernel)) >= 5


def test_exponentials_of_sums_leave_float32() -> None:
    wrong = refused("chunked_linear_attention", lambda case: factors_apart(case).transpose(1, 2))
    assert len(wrong) >= 5


def test_triangles_over_incoming_edges_fail() -> None:
    def incoming(case: Case) -> Any:
        return with_changed(case, pairs=drawn(case)["pairs"].transpose(0, 1)).transpose(0, 1)

    wrong = refused("triangle_multiplicative_update", incoming)
    assert len(wrong) == len(cases("triangle_multiplicative_update")) - 1  # of one token, the same


def test_exchanged_edges_fail() -> None:
    def exchanged(case: Case) -> Any:
        return with_changed(case, in_weights=drawn(case)["in_weights"].roll(2, 0))

    assert len(refused("triangle_multiplicative_update", exchanged)) >= 7

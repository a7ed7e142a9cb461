"""Caps that hold to the call: what may still be spent, with everything in flight at its worst."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_runner.data.numbers import usd
from runs_app.optimiser.evolve.commands import Message
from runs_app.optimiser.evolve.config import Budget, ModelSpec
from runs_app.optimiser.evolve.history import History

MIN_OUTPUT_TOKENS = 256
"""An answer that may be no longer than this is not worth asking for."""

# What a chat template adds; `runs_app.optimiser.llm` believes an endpoint that counts as much.
_TOKENS_PER_MESSAGE = 16
_TOKENS_PER_CALL = 64


def tokens_bound(messages: Iterable[Message]) -> int:
    """No fewer tokens than any tokenizer makes of these messages: a token has a byte or more.

    Usual text has about four bytes a token, but some tokenizers make a token of every digit.
    """
    content = sum(len(message.content.encode()) + _TOKENS_PER_MESSAGE for message in messages)
    return content + _TOKENS_PER_CALL


def cost_usd(model: ModelSpec, tokens_in: int, tokens_out: int) -> float | None:
    """Price of a call; None if it used tokens whose price nobody knows."""
    if model.price_in_usd is None or model.price_out_usd is None:
        return None if tokens_in or tokens_out else 0.0
    return (tokens_in * model.price_in_usd + tokens_out * model.price_out_usd) / 1e6


def worst_usd(model: ModelSpec, tokens_in: int, tokens_out: int) -> float:
    """What such a call holds back from a cap on money; nothing without a price, or a cap."""
    return cost_usd(model, tokens_in, tokens_out) or 0.0


def unpriced(models: Iterable[ModelSpec], instead: str = "leave the cap out") -> str:
    """Why no cap on money can hold with these language models, and what to do; empty if one can."""
    names = ", ".join(model.name for model in models if not model.is_priced)
    return names and (
        f"a cap on money can't be checked, since the price of {names} is unknown:"
        f" {instead}, or have an admin enter the price (0 if it is free)"
    )


@dataclass(frozen=True)
class Spent:
    """What a run has spent or may have to pay for what it has begun."""

    usd: float
    tokens: int
    evaluations: int


def spent(history: History) -> Spent:
    """Answered asks at their cost, unanswered ones at their worst."""
    waiting = history.waiting()
    return Spent(
        history.paid_usd + sum(question.worst_usd for question in waiting),
        history.paid_tokens + sum(question.worst_tokens for question in waiting),
        history.told.begun,
    )


@dataclass(frozen=True)
class Allowance:
    """Tokens that an answer may have, or the reason why there must be no ask.

    lacks: the cap that is too low, and `needs` what it would have to be for this ask.
    """

    max_tokens: int
    worst_usd: float = 0.0
    worst_tokens: int = 0
    refusal: str = ""
    lacks: str = ""
    needs: float = 0.0


def allow(
    budget: Budget, so_far: Spent, model: ModelSpec, tokens_in: int, wanted: int
) -> Allowance:
    """How long an answer the budget can pay for, at most `wanted` tokens.

    `tokens_in` is the bound of the messages; what the model's parameters add comes on top.
    """
    tokens_in += model.extra_tokens
    most = min(wanted, model.max_output_tokens)
    least = min(most, MIN_OUTPUT_TOKENS)
    if budget.tokens is not None:
        most = min(most, budget.tokens - so_far.tokens - tokens_in)
        if most < least:
            left = max(budget.tokens - so_far.tokens, 0)
            return Allowance(
                0,
                refusal=f"the budget of {budget.tokens} tokens leaves no room for another call:"
                f" {left} are left, and it may take {tokens_in + least}",
                lacks="tokens",
                needs=so_far.tokens + tokens_in + least,
            )
    if budget.usd is not None:
        if refusal := unpriced([model]):
            return Allowance(0, refusal=refusal)
        left_usd = budget.usd - so_far.usd
        most = min(most, _affordable(model, left_usd - worst_usd(model, tokens_in, 0)))
        if most < least:
            worst = worst_usd(model, tokens_in, least)
            return Allowance(
                0,
                refusal=f"the budget of {usd(budget.usd)} leaves no room for another call of"
                f" {model.name}: {usd(max(left_usd, 0))} is left, and it may cost {usd(worst)}",
                lacks="usd",
                needs=so_far.usd + worst,
            )
    return Allowance(most, worst_usd(model, tokens_in, most), tokens_in + most)


def _affordable(model: ModelSpec, left_usd: float) -> int:
    """Most tokens of output for that much money."""
    if left_usd < 0:
        return -1
    if not model.price_out_usd:
        return model.max_output_tokens
    return int(left_usd * 1e6 / model.price_out_usd)


def evaluations_refusal(budget: Budget, so_far: Spent) -> str:
    """Why nothing more may be measured; empty if something may."""
    if budget.evaluations is None or so_far.evaluations < budget.evaluations:
        return ""
    return f"the budget of {budget.evaluations} evaluations is used up"


def wall_time_refusal(budget: Budget, active_s: float) -> str:
    """Why the run may go on no longer; empty if it may. The clock is the caller's."""
    if budget.wall_time_s is None or active_s < budget.wall_time_s:
        return ""
    return f"the budget of {budget.wall_time_s} s of running time is used up"

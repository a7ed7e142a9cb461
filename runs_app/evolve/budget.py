"""Caps that hold to the call: what may still be spent, with everything in flight at its worst."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runs_app.evolve.config import Budget, ModelSpec
from runs_app.evolve.history import AskState, History
from runs_app.evolve.wishes import Message

MIN_OUTPUT_TOKENS = 256
"""An answer that may be no longer than this is not worth asking for."""

_BYTES_PER_TOKEN = 2  # tokenizers need fewer tokens than this for code and English
_TOKENS_PER_MESSAGE = 16


def tokens_bound(messages: Iterable[Message]) -> int:
    """More tokens than a tokenizer makes of these messages: half their bytes in UTF-8."""
    return sum(
        len(message.content.encode()) // _BYTES_PER_TOKEN + _TOKENS_PER_MESSAGE
        for message in messages
    )


def cost_usd(model: ModelSpec, tokens_in: int, tokens_out: int) -> float:
    """Price of a call."""
    return (tokens_in * model.price_in_usd + tokens_out * model.price_out_usd) / 1e6


@dataclass(frozen=True)
class Spent:
    """What a run has spent or may have to pay for what it has begun."""

    usd: float
    tokens: int
    evaluations: int


def spent(history: History) -> Spent:
    """Answered asks at their cost, unanswered ones at their worst."""
    usd, tokens = 0.0, 0
    for question in history.questions.values():
        waits = question.state is AskState.WAITING
        usd += question.worst_usd if waits else question.cost_usd
        tokens += question.worst_tokens if waits else question.tokens
    return Spent(usd, tokens, history.evaluations())


@dataclass(frozen=True)
class Allowance:
    """Tokens that an answer may have, or the reason why there must be no ask."""

    max_tokens: int
    worst_usd: float = 0.0
    worst_tokens: int = 0
    refusal: str = ""


def allow(
    budget: Budget, so_far: Spent, model: ModelSpec, tokens_in: int, wanted: int
) -> Allowance:
    """How long an answer the budget can pay for, at most `wanted` tokens."""
    most = min(wanted, model.max_output_tokens)
    if budget.tokens is not None:
        most = min(most, budget.tokens - so_far.tokens - tokens_in)
    if budget.usd is not None:
        left = budget.usd - so_far.usd - cost_usd(model, tokens_in, 0)
        if model.price_out_usd > 0:
            most = min(most, int(left * 1e6 / model.price_out_usd))
        elif left < 0:
            most = 0
    if most < MIN_OUTPUT_TOKENS:
        return Allowance(0, refusal=_refusal(budget, so_far, model, tokens_in))
    return Allowance(most, cost_usd(model, tokens_in, most), tokens_in + most)


def _refusal(budget: Budget, so_far: Spent, model: ModelSpec, tokens_in: int) -> str:
    short = budget.tokens is not None and (
        budget.tokens - so_far.tokens - tokens_in < MIN_OUTPUT_TOKENS
    )
    if short:
        return f"the budget of {budget.tokens} tokens leaves no room for another call"
    return f"the budget of ${budget.usd:g} leaves no room for another call of {model.name}"


def evaluations_refusal(budget: Budget, so_far: Spent) -> str:
    """Why nothing more may be measured; empty if something may."""
    if budget.evaluations is None or so_far.evaluations < budget.evaluations:
        return ""
    return f"the budget of {budget.evaluations} evaluations is used up"

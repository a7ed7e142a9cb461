"""What a call costs, what it may cost at worst, and how much of it a budget still pays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from runs_app.llm.endpoint import Endpoint

MIN_OUTPUT_TOKENS = 256  # fewer hold no kernel: such a call would be money for nothing
TOKENS_PER_MESSAGE = 16  # role and separators of a chat template, with room to spare
TOKENS_PER_CALL = 64  # the template's own opening, and a short system text where none is given
MILLION = Decimal(1_000_000)

Message = Mapping[str, str]  # role, content


def cost_usd(endpoint: Endpoint, tokens_in: int, tokens_out: int) -> Decimal:
    """Price of a call in US dollars, exact; discounts for cached input are not counted."""
    per_million = endpoint.price_in_usd * tokens_in + endpoint.price_out_usd * tokens_out
    return per_million / MILLION


def upper_bound_tokens(messages: Sequence[Message], extra: Mapping[str, Any] | None = None) -> int:
    """More tokens than any tokenizer makes of `messages`: one for each byte of UTF-8.

    Byte-level and byte-fallback tokenizers make no token of less than a byte. Real counts of
    source code are a third to a fifth of this; the bound reserves, what is charged is the usage.
    """
    content = sum(len(message["content"].encode(errors="replace")) for message in messages)
    template = TOKENS_PER_MESSAGE * len(messages) + TOKENS_PER_CALL
    return content + template + extra_tokens(extra or {})


def extra_tokens(extra: Mapping[str, Any]) -> int:
    """The most that further parameters of a request, such as a schema, add to its prompt."""
    return len(json.dumps(dict(extra)).encode()) if extra else 0


def estimated_tokens(text: str) -> int:
    """A guess on the high side, for endpoints that do not count: one token for two bytes.

    Tokenizers make one of three to four bytes of English or source code.
    """
    return -(-len(text.encode(errors="replace")) // 2)


def estimated_prompt_tokens(messages: Sequence[Message]) -> int:
    """What `messages` are guessed to come to, on the high side, with their chat template."""
    content = sum(estimated_tokens(message["content"]) for message in messages)
    return content + TOKENS_PER_MESSAGE * len(messages)


def worst_case_usd(endpoint: Endpoint, messages: Sequence[Message], max_tokens: int) -> Decimal:
    """The most that a call with at most `max_tokens` of output can cost, in US dollars."""
    return cost_usd(endpoint, upper_bound_tokens(messages), max_tokens)


def affordable_tokens(
    endpoint: Endpoint,
    messages: Sequence[Message],
    remaining_usd: Decimal | None,
    remaining_tokens: int | None,
    wanted: int,
) -> int:
    """Output tokens, at most `wanted`, that what remains pays for at worst; None is no cap.

    0 if fewer than MIN_OUTPUT_TOKENS can be paid, or fewer than `wanted` where that is less. The
    context window counts with the estimate and not the bound: to overrun it costs nothing.
    """
    bound = upper_bound_tokens(messages)
    most = min(wanted, endpoint.max_output_tokens)
    least = min(MIN_OUTPUT_TOKENS, most)
    if endpoint.context_tokens:
        most = min(most, endpoint.context_tokens - estimated_prompt_tokens(messages))
    if remaining_tokens is not None:
        most = min(most, remaining_tokens - bound)
    if remaining_usd is not None:
        left = remaining_usd - cost_usd(endpoint, bound, 0)
        if left < 0:
            return 0
        if endpoint.price_out_usd:
            most = min(most, int(left * MILLION // endpoint.price_out_usd))
    return most if most >= max(1, least) else 0

"""How many tokens a call is charged with: the endpoint's count if it is believable."""

from __future__ import annotations

from runs_app.optimiser.llm.endpoint import Endpoint
from runs_app.optimiser.llm.errors import Usage
from runs_app.optimiser.llm.reading import Answer
from runs_app.optimiser.llm.tokens import (
    Message,
    estimated_prompt_tokens,
    estimated_tokens,
    upper_bound_tokens,
)


class Meter:
    """Counts one call: its messages and the most tokens that it allowed as output."""

    def __init__(self, endpoint: Endpoint, messages: list[Message], max_tokens: int) -> None:
        self._endpoint = endpoint
        self._messages = messages
        self._max_tokens = max_tokens

    def usage(self, answer: Answer) -> Usage:
        """What an answer, whole or broken off, has cost: as reported, else estimated."""
        return self._reported(answer) or self._estimated(answer)

    def _reported(self, answer: Answer) -> Usage | None:
        """The endpoint's own numbers; None where they are missing or cannot be true."""
        tokens_in = count(answer.usage, "prompt_tokens")
        tokens_out = count(answer.usage, "completion_tokens")
        if tokens_in is None or tokens_out is None:
            return None
        details = answer.usage.get("completion_tokens_details")
        reasoning = count(details, "reasoning_tokens") or 0
        # Some endpoints count reasoning beside the output; the total then tells.
        if reasoning and count(answer.usage, "total_tokens") == tokens_in + tokens_out + reasoning:
            tokens_out += reasoning
        most_in = upper_bound_tokens(self._messages, self._endpoint.extra)
        most_out = max(self._max_tokens, answer.text_bytes + answer.unseen_bytes)
        least_out = 1 if answer.text_bytes else 0
        if not (0 < tokens_in <= most_in and least_out <= tokens_out <= most_out):
            return None
        return Usage(tokens_in=tokens_in, tokens_out=tokens_out)

    def _estimated(self, answer: Answer) -> Usage:
        """From the bytes; the whole allowance where nothing shows how much was made."""
        tokens_in = estimated_prompt_tokens(self._messages)
        shown = estimated_tokens(answer.text) + -(-answer.unseen_bytes // 2)
        if not shown or self._endpoint.thinks_unseen:
            shown = max(shown, self._max_tokens)
        return Usage(tokens_in=tokens_in, tokens_out=shown, estimated=True)


def count(numbers: object, name: str) -> int | None:
    """A number of tokens out of what an endpoint sent; None if it is no whole number."""
    value: object = numbers.get(name) if isinstance(numbers, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None

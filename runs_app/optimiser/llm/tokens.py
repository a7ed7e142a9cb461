"""How many tokens a call may have at most, and how many are guessed where nobody counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

TOKENS_PER_MESSAGE = 16  # role and separators of a chat template, with room to spare
TOKENS_PER_CALL = 64  # the template's own opening, and a short system text where none is given

Message = Mapping[str, str]  # role, content


def upper_bound_tokens(
    messages: Sequence[Message], extra: Mapping[str, object] | None = None
) -> int:
    """More tokens than any tokenizer makes of `messages`: one for each byte of UTF-8.

    Byte-level and byte-fallback tokenizers make no token of less than a byte. Real counts of
    source code are a third to a fifth of this; the bound reserves, what is charged is the usage.
    """
    content = sum(len(message["content"].encode(errors="replace")) for message in messages)
    template = TOKENS_PER_MESSAGE * len(messages) + TOKENS_PER_CALL
    return content + template + extra_tokens(extra or {})


def extra_tokens(extra: Mapping[str, object]) -> int:
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

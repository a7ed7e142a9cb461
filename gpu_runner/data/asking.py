"""What a module's process asks the supervisor's workshop to compile: a word, and a file beside it.

A request for a Triton kernel holds `options` of Triton's compiler, `target` and `ttir`, Triton's
own representation of the kernel. The answer holds `stages`, what each later stage made of it, and
`metadata`, what they noted about it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TypedDict


class TritonRequest(TypedDict):
    """See above; `target` has the backend's name, the architecture and the size of a warp."""

    options: dict[str, object]
    target: tuple[str, int, int]
    ttir: str


EXTENSION, TRITON = b"?", b"t"
LIMIT_BYTES = 64 << 20  # chosen: what an archive may have


def written(value: Mapping[str, object]) -> bytes:
    """A value of Python's plain types as text. Raises `ValueError` if it has others."""
    text = repr(value)
    if ast.literal_eval(text) != value:
        raise ValueError("not of plain types")
    return text.encode()


def read(content: bytes) -> dict[str, dict[str, object]]:
    """What `written` wrote. Raises `ValueError` or `SyntaxError`."""
    return dict(ast.literal_eval(content.decode()))

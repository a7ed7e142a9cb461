"""What the compiler's preprocessor made of a submission, kept beside the library that it became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import encode
from gpu_runner.data.static import Code, own_lines
from gpu_runner.supervisor.host.files import read_json, write_atomically

PASS_LIMIT_BYTES = 64 << 20
"""Of one output of the preprocessor; torch's own headers are 17 MB."""

_FILE = "passes.json"


def keep(library: Path, outputs: Sequence[bytes], names: Sequence[str]) -> None:
    """Keep the own lines of each output; of none if one is missing, or too large.

    names: see `own_lines`.
    """
    whole = all(0 < len(output) <= PASS_LIMIT_BYTES for output in outputs)
    texts = [output.decode(errors="replace") for output in outputs] if whole else []
    write_atomically(library.with_name(_FILE), encode([own_lines(text, names) for text in texts]))


def own_code(library: Path) -> tuple[Code, ...]:
    """A library's source after its macros, without headers: once for each pass.

    Empty if nothing was kept.
    """
    known = library.with_name(_FILE)
    return tuple(map(_code, read_json(known))) if known.exists() else ()


def _code(told: Mapping[str, Any]) -> Code:
    return Code(told["text"], tuple((row, file, line) for row, file, line in told["runs"]))

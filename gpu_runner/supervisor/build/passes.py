"""What the compiler's preprocessor made of a submission, kept beside the library that it became."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpu_runner.data.static import own_lines
from gpu_runner.supervisor.host.files import read_json, write_atomically

PASS_LIMIT_BYTES = 64 << 20
"""Of one output of the preprocessor; torch's own headers are 17 MB."""

_FILE = "passes.json"


def keep(library: Path, outputs: Sequence[bytes]) -> None:
    """Keep the own lines of each output; of none if one is missing, or too large."""
    whole = all(0 < len(output) <= PASS_LIMIT_BYTES for output in outputs)
    texts = [own_lines(output.decode(errors="replace")) for output in outputs] if whole else []
    write_atomically(library.with_name(_FILE), texts)


def own_code(library: Path) -> tuple[str, ...]:
    """A library's source after its macros, without headers: a text for each pass.

    Each line stands at its place. Empty if nothing was kept.
    """
    known = library.with_name(_FILE)
    return tuple(read_json(known)) if known.exists() else ()

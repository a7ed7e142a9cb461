"""The files of a submission as pages show them: each with its language and its lines' anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpu_runner.data.verdict import Language
from runs_app.models import Submission
from tasks_app.templatetags.source import ShownFile

ENTRY = "L-"
"""What the anchors of an entry's lines begin with."""
_LANGUAGES = {".py": Language.PYTHON, ".cu": Language.CUDA, ".cuh": Language.CUDA}
"""Of files that are neither of these, the text is shown as C++."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line of a file, in words and as the page's anchor."""

    words: str
    anchor: str


def shown_files(submission: Submission) -> tuple[ShownFile, ...]:
    """All files of a submission, its entry first."""
    return tuple(
        ShownFile(
            name=name,
            text=text,
            language=_LANGUAGES.get(PurePosixPath(name).suffix, Language.CPP).value,
            anchor=f"F{index}-L" if index else "L",
        )
        for index, (name, text) in enumerate(submission.solution.texts.items())
    )


def place_of(files: Sequence[ShownFile], name: str, line: int) -> Place:
    """Where a line of a file is; an empty name means the entry."""
    file = next((each for each in files if each.name == name), files[0] if files else None)
    words = f"line {line}" if len(files) < 2 or file is None else f"{file.name}, line {line}"
    return Place(words=words, anchor=f"{file.anchor if file else 'L'}-{line}")

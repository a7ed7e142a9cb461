"""Kernels that a command wants measured before it answers: files in its folder, and their verdicts.

It puts a kernel into `attempts/` and finds `attempts/NAME.md` beside it some seconds later. So it
needs no network, and no secret that could be stolen from it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

FOLDER = "attempts"
MOST_BYTES = 1 << 20
_SETTLED_S = 1.0  # a file that was not written to for so long is whole

TOLD = """
[attempts]

You can try up to {most} kernels before you answer. Write one to a file in the folder
`attempts`, such as `attempts/1{suffix}`. Its verdict and times appear in a file with the same
name plus `.md`, usually within seconds. Wait for it before you try the next one.
"""


class Refused(Exception):
    """A kernel that is not measured; the text says why."""


class Measurer(Protocol):
    """Has kernels measured for one call."""

    most: int
    suffix: str  # of a kernel's file

    def begin(self, source: str) -> str:
        """Have a kernel measured; returns a key. Raises `Refused`."""

    def report(self, key: str) -> str | None:
        """What came of it, in words; None before that."""


class Attempts:
    """The folder in which a command leaves kernels; look into it from time to time."""

    def __init__(self, folder: Path, measurer: Measurer) -> None:
        self._folder, self._measurer = folder / FOLDER, measurer
        self._folder.mkdir()
        self._seen: set[str] = set()
        self._waiting: dict[str, str] = {}

    def look(self) -> None:
        """Begin what is new, and write down what has come."""
        for path in sorted(self._folder.iterdir()):
            if path.name not in self._seen and self._is_whole(path):
                self._seen.add(path.name)
                self._begin(path)
        for name, key in list(self._waiting.items()):
            words = self._measurer.report(key)
            if words is not None:
                del self._waiting[name]
                self._answer(name, words)

    @staticmethod
    def _is_whole(path: Path) -> bool:
        if path.is_symlink() or not path.is_file() or path.suffix in (".md", ".partial"):
            return False
        return time.time() - path.stat().st_mtime >= _SETTLED_S

    def _begin(self, path: Path) -> None:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        try:
            if len(content) > MOST_BYTES:
                raise Refused(f"it is larger than {MOST_BYTES >> 20} MiB")
            self._waiting[path.name] = self._measurer.begin(content.decode(errors="replace"))
        except Refused as refusal:
            self._answer(path.name, f"Not measured: {refusal}.")

    def _answer(self, name: str, words: str) -> None:
        partial = self._folder / f"{name}.partial"
        partial.write_text(words + "\n")
        partial.rename(self._folder / f"{name}.md")

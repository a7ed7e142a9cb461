"""The folder tree of ARCHITECTURE.md, drawn from the code.

`python -m tests.architecture.tree` draws it again. A folder's words are the first sentence of its
package's docstring; `OTHERS` has those of folders that are no packages.
"""

from __future__ import annotations

import ast
import re
import subprocess
import textwrap
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- folders: begin -->\n", "<!-- folders: end -->\n"
DEPTH = 3
TOP = ("kbench_web", "leaderboard_app", "runs_app", "tasks_app", "gpu_runner", "kbench_client")
_INDENT, _COLUMN, _WIDTH = 2, 24, 96
_INSIDE = {"migrations", "management", "templatetags"}
"""Folders that Django demands wherever they are needed; they tell a reader nothing."""

OTHERS = {
    "gpu_runner/native": "C++: the c-ABI runner, cache flush, anchor kernel; built once, cached.",
    "kbench_client/exported": "Files of an exported kernel: loader, condition, operator and tests.",
    "tasks_app/catalog": "The built-in tasks, one folder each.",
    "templates": "Markup, by app.",
    "static": "Styles and scripts.",
    "tests": "Unit, integration, browser and GPU tests; the red team; benchmarks.",
    "docs": "Documentation for users and operators.",
}


def drawn() -> str:
    """The block between the markers, fenced."""
    sentences = {path: _sentence(path) for path in _packages()} | OTHERS
    lines = [line for path in sorted(sentences, key=_order) for line in _lines(path, sentences)]
    return "```\n" + "\n".join(lines) + "\n```\n"


def stored(page: str) -> str:
    """What the page has between the markers."""
    return page.split(BEGIN)[1].split(END, maxsplit=1)[0]


def without_words() -> list[str]:
    """Packages of the tree whose `__init__` says nothing."""
    return [path for path in _packages() if not _sentence(path)]


def _packages() -> Iterable[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*__init__.py"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        folder = Path(name).parent
        known = folder.parts[0] in TOP and not _INSIDE & set(folder.parts)
        if known and len(folder.parts) <= DEPTH and (ROOT / name).exists():
            yield str(folder)


def _sentence(folder: str) -> str:
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text())) or ""
    return re.split(r"(?<=\.)\s|\n\n", text)[0].replace("\n", " ").strip()


def _order(folder: str) -> tuple[int, str]:
    top = folder.split("/", maxsplit=1)[0]
    return (TOP.index(top) if top in TOP else len(TOP), folder)


def _lines(folder: str, sentences: dict[str, str]) -> list[str]:
    """One folder, indented by its depth, with its sentence in a column of its own."""
    depth = folder.count("/")
    name = " " * (_INDENT * depth) + folder.rsplit("/", 1)[-1] + "/"
    return textwrap.wrap(
        sentences[folder] or "-",
        _WIDTH,
        initial_indent=f"{name + ' ':<{_COLUMN}}",
        subsequent_indent=" " * _COLUMN,
    )


def main() -> None:
    """Draw the tree again."""
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(before + BEGIN + drawn() + END + after)


if __name__ == "__main__":
    main()

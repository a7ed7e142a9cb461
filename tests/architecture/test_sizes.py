"""Files and functions stay small enough to be read at once."""

from __future__ import annotations

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE_LINES = 400
FUNCTION_LINES = 40
_HOLDS = (ast.stmt, ast.excepthandler, ast.match_case)


@functools.cache
def sources() -> list[Path]:
    """Python files of the project: known to git, or new and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in paths if path.exists() and "migrations" not in path.parts]


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text())


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name and lines of body of each function; the docstring is not counted."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        # Expressions, which are most of a tree, hold none.
        waiting += [each for each in ast.iter_child_nodes(node) if isinstance(each, _HOLDS)]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[ast.get_docstring(node) is not None :]
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            yield node.name, lines


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sources()}
    assert len(lengths) > 50
    too_long = [f"{p.relative_to(ROOT)}: {n}" for p, n in lengths.items() if n >= FILE_LINES]
    assert not too_long


def test_functions_are_short() -> None:
    too_long = [
        f"{path.relative_to(ROOT)} {name}: {lines}"
        for path in sources()
        for name, lines in functions(tree_of(path))
        if lines >= FUNCTION_LINES
    ]
    assert not too_long


def test_modules_say_what_they_are_for() -> None:
    mute = []
    for path in sources():
        tree = tree_of(path)
        if tree.body and "catalog" not in path.parts and not ast.get_docstring(tree):
            mute.append(str(path.relative_to(ROOT)))
    assert not mute


def test_names_say_what_is_inside() -> None:
    vague = {"utils.py", "helpers.py", "manager.py", "misc.py", "common.py"}
    assert [str(path) for path in sources() if path.name in vague] == []

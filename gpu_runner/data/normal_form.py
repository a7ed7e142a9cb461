"""A Python source without its comments and layout: the text that runs, and that builds are for."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gpu_runner.data.solution import Solution

_TYPES = re.compile(r"#\s*type:")
"""A comment that `torch.jit.script` reads."""


@dataclass(frozen=True)
class NormalForm:
    """The text that runs, and for each of its lines the line of the source that it comes from.

    lines: empty where the text is the source itself. name: of the source, for its author. files:
    texts beside it, as they are.
    """

    text: str
    lines: tuple[int, ...] = ()
    name: str = "kernel.py"
    files: Mapping[str, str] = field(default_factory=dict)

    def source_line(self, number: int | None) -> int | None:
        """The line of the source that became this line of the text."""
        if number is None or not 0 < number <= len(self.lines):
            return number
        return self.lines[number - 1]


def form_of(solution: Solution) -> NormalForm:
    """The normal form of a solution's entry, with the files beside it."""
    form = normal_form(solution.source)
    return replace(form, name=solution.name, files=dict(solution.files))


def normal_form(source: str) -> NormalForm:
    """The same program without comments and layout, so that changing those compiles nothing anew.

    Compilers of Python functions key their caches by text and line. A source that can't be written
    anew, or whose comments mean something, stays as it is.
    """
    if _TYPES.search(source):
        return NormalForm(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes, which importing it tells, too
            tree = ast.parse(source)
            text = ast.unparse(tree) + "\n"
            again = ast.parse(text)
            if ast.dump(tree) != ast.dump(again):
                return NormalForm(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NormalForm(source)
    return NormalForm(text, tuple(_lines(tree, again, text.count("\n"))))


def _lines(source: ast.AST, text: ast.AST, count: int) -> Iterator[int]:
    known: dict[int, int] = {}
    for old, new in zip(ast.walk(source), ast.walk(text), strict=True):
        if isinstance(old, ast.expr | ast.stmt) and isinstance(new, ast.expr | ast.stmt):
            known.setdefault(new.lineno, old.lineno)
    line = 1
    for number in range(1, count + 1):
        line = known.get(number, line)
        yield line

"""Print every text of the interface, so that an editor can read them in one go."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from tests.architecture.words import ROOT

Texts = Iterator[tuple[int, str]]

_ROOTS = ("templates", "runs_app", "tasks_app", "leaderboard_app", "kbench_web", "kbench_client",
          "gpu_runner", "static/js")  # fmt: skip
_SKIPPED = re.compile(r"/(migrations|catalog|catalog_soundness|example|native)/")
_HIDDEN = re.compile(r"\{#.*?#\}|\{% comment .*?endcomment %\}|<(script|style)\b.*?</\1>", re.S)
_READ = re.compile(r'\b(?:title|label|placeholder|aria-label|alt|content|empty)="([^"{]+)"')
_INLINE = re.compile(r"</?(a|abbr|b|code|em|kbd|span|strong)\b[^>]*>", re.S)
_QUOTED = re.compile(r'"([^"\n]+)"|`([^`]+)`')
_WORD = re.compile(r"(?<!\S)[“(]?[A-Za-z’'-]{2,}[.,:;?!)”]*(?!\S)")
_TOLD = re.compile(r"/\w*api\w*\.py$|/mcp_server/(tools|challenges)\.py$")
"""Modules whose docstrings users read: OpenAPI and MCP show them."""
_CODE = re.compile(r"^(SELECT|INSERT|UPDATE|/|--|<)|[{;]$|::|\\[bsdw(]|\(\?")


def template_texts(text: str) -> Texts:
    """What a template shows: a block of HTML in one line, with `|` between Django's branches."""
    text = _HIDDEN.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in _READ.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]
    bare = re.sub(r"\{%.*?%\}", lambda match: "|" + "\n" * match[0].count("\n"), text)
    bare = _INLINE.sub(lambda match: "\n" * match[0].count("\n"), re.sub(r"\{\{.*?\}\}", "…", bare))
    start = 0
    for tag in re.finditer(r"<[^>]*>|\Z", bare):
        yield bare.count("\n", 0, start) + 1, unescape(bare[start : tag.start()]).strip(" |\n")
        start = tag.end()


def python_texts(text: str) -> Texts:
    """Strings of a module, without docstrings; values of f-strings are dots."""
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = [each.value if isinstance(each, ast.Constant) else "…" for each in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting.extend(ast.iter_child_nodes(node))


def told_texts(text: str) -> Texts:
    """Strings of a module, and the docstrings of its public classes, functions and methods."""
    yield from python_texts(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.lineno, ast.get_docstring(node) or ""


def script_texts(text: str) -> Texts:
    """Strings of a script, without comments."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith(("//", "*", "/*")):
            yield from ((number, a or b) for a, b in _QUOTED.findall(line))


# chosen: a template's words are all read; in code, what is shorter than this is mostly a name
_READERS = {".html": (template_texts, 1), ".txt": (template_texts, 1), ".py": (python_texts, 3),
            ".js": (script_texts, 2)}  # fmt: skip
SUFFIXES = frozenset(_READERS)


def texts(path: Path) -> Texts:
    """Line and text of all that a file may show, names included."""
    reader = told_texts if _TOLD.search(str(path)) else _READERS[path.suffix][0]
    return reader(path.read_text())


def prose(path: Path) -> list[tuple[int, str]]:
    """Line and text of all that somebody reads in a file."""
    least = _READERS[path.suffix][1]
    found = {(line, " ".join(text.split())) for line, text in texts(path)}
    return sorted(
        (line, text)
        for line, text in found
        if len(_WORD.findall(text)) >= least and not _CODE.search(text)
    )


def main(names: list[str]) -> None:
    """Print each file's name, and below it `line: text`."""
    roots = [ROOT / each for each in names or _ROOTS]
    paths = [path for root in roots for path in sorted([root, *root.rglob("*")])]
    for path in paths:
        readable = path.suffix in SUFFIXES and not _SKIPPED.search(str(path))
        if readable and (shown := prose(path)):
            print(f"\n== {path.relative_to(ROOT)}")
            print("\n".join(f"{line}: {text}" for line, text in shown))


if __name__ == "__main__":
    main(sys.argv[1:])

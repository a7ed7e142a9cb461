"""Numbers that somebody measured or chose say where they come from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
DATA = ROOT / "gpu_runner" / "data"
TUNED = [DATA / name for name in ("floor.py", "protocol.py", "soundness.py")]
ENGINE = sorted((ROOT / "gpu_runner").rglob("*.py"))


def is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone, or of a table's."""
    match node:
        case ast.Constant():
            return isinstance(node.value, int | float) and not isinstance(node.value, bool)
        case ast.UnaryOp():
            return is_number(node.operand)
        case ast.BinOp():
            return is_number(node.left) or is_number(node.right)
        case ast.Tuple():
            return bool(node.elts) and all(map(is_number, node.elts))
        case ast.Dict():
            return any(map(is_number, node.values))
    return False


def constants(source: str) -> Iterator[tuple[str, ast.expr, str]]:
    """Name, value and words of each constant of a module.

    Words stand in a string below it, or in a comment on its lines or above it. What follows
    without a break shares the comment of the first.
    """
    lines = source.splitlines()
    body = ast.parse(source).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or not target.id.strip("_").isupper():
            continue
        below = after.value if isinstance(after, ast.Expr) else None
        words = str(below.value) if isinstance(below, ast.Constant) else ""
        if not words:
            own = lines[node.lineno - 1 : node.end_lineno]
            words = " ".join(line.partition("#")[2] for line in [*own, above(lines, node.lineno)])
        yield target.id, node.value, words.strip()


def above(lines: list[str], number: int) -> str:
    """The comment over a block of lines without a break, of which this line is one."""
    at = number - 2
    while at >= 0 and lines[at].strip() and not lines[at].startswith(("#", " ")):
        at -= 1
    return lines[at] if at >= 0 and lines[at].startswith("#") else ""


def test_numbers_have_words() -> None:
    mute = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in ENGINE
        for name, value, words in constants(path.read_text())
        if is_number(value) and not words
    ]
    assert mute == []


def test_tuned_numbers_name_their_source() -> None:
    found = [constant for path in TUNED for constant in constants(path.read_text())]
    assert len(found) > 50
    assert [name for name, _, words in found if "Source: " not in words] == []


def test_decisions_that_the_code_names_are_there() -> None:
    """By number and title, so that a number which has moved is noticed."""
    named = {
        name for path in ENGINE for name in re.findall(r"docs/decisions/([\w-]+)", path.read_text())
    }
    assert named
    assert [n for n in named if "-" not in n or len(list(DECISIONS.glob(f"{n}*.md"))) != 1] == []


def test_a_mute_number_is_found() -> None:
    source = '# one\nA = 1\nB_S = 2.0\n\nC = 3\nD = 4  # why\nE = 5\n"""Why."""\nF = "text"\n'
    found = {name: words for name, value, words in constants(source) if is_number(value)}
    assert found == {"A": "one", "B_S": "one", "C": "", "D": "why", "E": "Why."}

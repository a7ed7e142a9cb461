"""The text that a module's processes run, and the lines that it comes from."""

from __future__ import annotations

import pytest

from gpu_runner.data.normal_form import normal_form

SOURCE = '''# A comment
"""What it is."""
import os  # for paths

X = """two
lines"""


def forward(x):
    # inside
    return (
        x + 1
    )
'''


def test_comments_and_layout_go_and_the_program_stays() -> None:
    form = normal_form(SOURCE)
    other = normal_form(SOURCE.replace("# inside\n    ", "").replace("# A comment\n", "\n\n"))
    assert form.text == other.text
    assert "#" not in form.text
    assert '"""What it is."""' in form.text
    names: dict[str, object] = {}
    exec(form.text, names)
    assert names["X"] == "two\nlines"


def test_lines_are_those_of_the_source() -> None:
    form = normal_form(SOURCE)
    places = {line: number for number, line in enumerate(form.text.splitlines(), 1)}
    assert form.source_line(places["import os"]) == 3
    assert form.source_line(places["def forward(x):"]) == 9
    assert form.source_line(places["    return x + 1"]) == 11
    assert form.source_line(None) is None


@pytest.mark.parametrize(
    "source",
    [
        "def forward(:\n",
        "def f(x):\n    # type: (Tensor) -> Tensor\n    return x\n",
        "x = " + "(" * 500 + ")" * 500,
    ],
)
def test_what_cannot_or_must_not_be_written_anew_stays(source: str) -> None:
    assert normal_form(source).text == source
    assert normal_form(source).source_line(2) == 2

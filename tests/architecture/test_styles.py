"""Styles keep to few sizes, one scale of spaces and short motion: all are tokens."""

from __future__ import annotations

import re
from pathlib import Path

STYLES = Path(__file__).parents[2] / "static" / "css"
TEXT = "\n".join(path.read_text() for path in sorted(STYLES.glob("*.css")))
TOKENS = (STYLES / "tokens.css").read_text()
FONT_SIZES = 6
SPACES = 8
LONGEST_MOTION_S = 0.2
_LENGTH = re.compile(r"(?<![\w.-])(\d*\.?\d+)(rem|px)\b")
_HAIRLINE_PX = 3  # chosen: a border's width, not a distance between things


def values(properties: str) -> list[str]:
    """What the styles give these properties."""
    return re.findall(rf"(?<![\w-])(?:{properties})\s*:\s*([^;}}]+)", TEXT)


def test_there_are_few_font_sizes() -> None:
    assert 0 < len(set(re.findall(r"--text-\w+(?=:)", TOKENS))) <= FONT_SIZES
    others = [
        each for each in values("font|font-size") if not re.search(r"var\(--text|inherit", each)
    ]
    assert others == []


def test_spaces_are_of_one_scale() -> None:
    assert 0 < len(set(re.findall(r"--space-\w+(?=:)", TOKENS))) <= SPACES
    sides = r"(?:padding|margin)(?:-(?:block|inline|top|bottom|left|right)(?:-(?:start|end))?)?"
    own = [
        each
        for each in values(rf"{sides}|gap|row-gap|column-gap")
        for number, unit in _LENGTH.findall(each)
        if unit == "rem" or float(number) > _HAIRLINE_PX
    ]
    assert own == []


def test_motion_is_short() -> None:
    found = [each for value in values("transition|animation") for each in _SECONDS.findall(value)]
    longest = max((float(n) / (1000 if unit == "ms" else 1) for n, unit in found), default=0.0)
    assert longest <= LONGEST_MOTION_S


_SECONDS = re.compile(r"(?<![\w.])(\d*\.?\d+)(ms|s)\b")

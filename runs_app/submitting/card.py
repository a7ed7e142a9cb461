"""A result as a picture for other sites: a card of 1200 by 630 pixels, and a small badge."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings
from PIL import Image, ImageDraw, ImageFont

from runs_app.core.work.result_state import baseline_words, result_state
from runs_app.models import Evaluation
from runs_app.submitting.pictures.comparison import standing
from runs_app.submitting.pictures.plot import axis_of
from runs_app.submitting.tags import verdict_kind, verdict_words
from tasks_app.numbers import duration_text, ends, significant

_SIZE = (1200, 630)
_MARGIN = 72
_PAPER, _INK, _FAINT, _LINE = "#0f1216", "#e8ebf0", "#aab3c0", "#2a313b"
_COLOURS = {"good": "#63cf8b", "bad": "#ff9088", "warn": "#efb955", "": "#8fb1ff"}
_STANDINGS = {"faster": "good", "slower": "warn", "neutral": ""}
_FONT = "static/vendor/geist/geist-latin-wght-normal.woff2"
_WEIGHT = 550
_LATIN_END = 0x100
_SIGNS = "–—…"
_LETTER_PX = 6.6  # mean width of a letter of a badge


@dataclass(frozen=True, kw_only=True)
class Badge:
    """Two labelled boxes; widths are in pixels."""

    label: str
    value: str
    kind: str

    @property
    def label_width(self) -> int:
        """Of the left box."""
        return round(len(self.label) * _LETTER_PX) + 16

    @property
    def value_width(self) -> int:
        """Of the right box."""
        return round(len(self.value) * _LETTER_PX) + 16

    @property
    def width(self) -> int:
        """Of both."""
        return self.label_width + self.value_width

    @property
    def label_at(self) -> float:
        """The middle of the left box."""
        return self.label_width / 2

    @property
    def value_at(self) -> float:
        """The middle of the right box."""
        return self.label_width + self.value_width / 2


def badge(evaluation: Evaluation) -> Badge:
    """The verdict in few words."""
    number, unit = _number(evaluation)
    value = f"{number}{unit}" if unit == "×" else f"{number} {unit}".strip()
    if state := result_state(evaluation):
        value = f"{value}, {state.label.lower()}"
    device = evaluation.device.short_name
    label = f"kbench {evaluation.task_version.task.slug}, {device}"
    return Badge(label=label, value=value, kind=_kind(evaluation))


def card(evaluation: Evaluation) -> bytes:
    """A PNG with the task, one number, and its interval beside the best baseline."""
    image = Image.new("RGB", _SIZE, _PAPER)
    draw = ImageDraw.Draw(image)
    number, unit = _number(evaluation)
    colour = _COLOURS[_kind(evaluation)]
    draw.text((_MARGIN, 60), "kbench", font=_font(34), fill=_FAINT)
    _line(draw, 110, evaluation.task_version.task.title, 60, _INK)
    _line(draw, 190, f"by {evaluation.submission.agent.name}", 36, _FAINT)
    _line(draw, 265, f"{number}{unit}" if unit == "×" else f"{number} {unit}", 150, colour)
    device = evaluation.device.short_name
    sizes = "listed and unlisted" if evaluation.score else "listed"
    against = f"the speed of {baseline_words(evaluation)} on {sizes} sizes, {device}"
    _line(draw, 450, against if unit == "×" else f"on {device}", 36, _FAINT)
    if state := result_state(evaluation):
        _line(draw, 60, state.label.lower(), 34, colour, right=True)
    if evaluation.rated:
        _interval(draw, evaluation.rated, evaluation.rated_spread or 0.0, colour)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _number(evaluation: Evaluation) -> tuple[str, str]:
    if evaluation.rated:
        return significant(evaluation.rated), "×"
    if evaluation.latency_ns:
        number, unit = duration_text(evaluation.latency_ns).split(" ", 1)
        return number, unit
    return verdict_words(evaluation.verdict) or evaluation.get_status_display(), ""


def _kind(evaluation: Evaluation) -> str:
    """The colour of the page: of a correct result, that of its speedup."""
    if not evaluation.is_correct:
        return verdict_kind(evaluation.verdict)
    state = result_state(evaluation)
    if state and (state.kind in ("warn", "bad") or not state.is_sure):
        return state.kind
    return _STANDINGS[standing(evaluation.rated, evaluation.rated_spread)]


def _interval(draw: ImageDraw.ImageDraw, speedup: float, spread: float, colour: str) -> None:
    low, high = ends(speedup, spread)
    axis = axis_of([low, high])

    def place(value: float) -> float:
        return _MARGIN + axis.at(value) / 100 * (_SIZE[0] - 2 * _MARGIN)

    y = 548
    for tick in axis.ticks():
        x = _MARGIN + tick.at / 100 * (_SIZE[0] - 2 * _MARGIN)
        draw.line([(x, y - 22), (x, y + 22)], fill=_FAINT if tick.is_one else _LINE, width=3)
        draw.text((x, y + 28), tick.label, font=_font(24), fill=_FAINT, anchor="ma")
    draw.line([(place(1.0), y), (place(speedup), y)], fill=_LINE, width=16)
    draw.line([(place(low), y), (place(high), y)], fill=colour, width=8)
    x = place(speedup)
    draw.ellipse([(x - 12, y - 12), (x + 12, y + 12)], fill=colour)


def _line(
    draw: ImageDraw.ImageDraw, y: float, text: str, size: int, colour: str, *, right: bool = False
) -> None:
    """A line that is made smaller until it fits, and cut where even that does not do."""
    text, room = printable(text), _SIZE[0] - 2 * _MARGIN
    while size > 24 and draw.textlength(text, font=_font(size)) > room:
        size -= 2
    while draw.textlength(text, font=_font(size)) > room:
        text = f"{text[:-2]}…"
    x, anchor = (_SIZE[0] - _MARGIN, "ra") if right else (_MARGIN, "la")
    draw.text((x, y), text, font=_font(size), fill=colour, anchor=anchor)


def printable(text: str) -> str:
    """The text as far as the font has its letters: Latin ones, and a few signs."""
    return "".join(c if ord(c) < _LATIN_END or c in _SIGNS else "?" for c in text)


@lru_cache(maxsize=64)
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.truetype(settings.BASE_DIR / _FONT, size)
    font.set_variation_by_axes([_WEIGHT])
    return font

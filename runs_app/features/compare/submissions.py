"""Submissions side by side: what they are, what came of them, workload by workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils.html import format_html
from django.utils.text import capfirst

from gpu_runner.data.codec import encode
from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.verdict import Mode
from runs_app.core.integrity.tags import state_chip
from runs_app.core.work.access import (
    asked_for,
    shown_result,
    visible_evaluations,
    visible_submissions,
)
from runs_app.core.work.result_state import baseline_words
from runs_app.features.compare.choice import NONE, Cell, Row, plain
from runs_app.models import Evaluation, Submission
from runs_app.submitting.page import WorkloadRow, workload_rows
from runs_app.submitting.pictures.plot import Log2Axis, Plot, PlotRow, axis_of, plot
from tasks_app.numbers import change, duration_text, percent, plus_minus, significant, times
from tasks_app.pages.text_diff import Budget, TextDiff, diff
from tasks_app.people import Viewer
from tasks_app.templatetags.display import half_width

_LOOKED_AT = 200  # newest evaluations of all of them
_SCORE = "Score"
_TWICE = 2.0  # chosen: beyond it, "5.5× slower" is clearer than "+450 %"
_OVER_BEST = {_SCORE, "Speedup on listed sizes", "Speedup on unlisted sizes", "P score"}
_FACTS = ("compiler", "device_name", "cpus", "driver", "cuda", "torch")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One submission with the evaluation that stands for it; `rows` are what one may see of it."""

    submission: Submission
    evaluation: Evaluation | None
    facts: Mapping[str, str]
    rows: Mapping[str, WorkloadRow] = field(default_factory=dict)
    noise: float = 0.0  # half the interval of what another evaluation would give

    @property
    def address(self) -> str:
        """The page of what stands for it."""
        page = self.submission.get_absolute_url()
        return f"{page}?evaluation={self.evaluation.pk}" if self.evaluation else page

    @property
    def place(self) -> str:
        """What it solves, and where it was measured."""
        device = f" · {self.evaluation.device}" if self.evaluation else ""
        return f"{self.submission.task_version.task.slug}{device}"

    @property
    def key(self) -> str:
        """As the address names it."""
        return str(self.submission.pk)

    @property
    def label(self) -> str:
        """Short, and different from those beside it."""
        return f"{self.submission.agent} {self.submission}"

    @property
    def problem(self) -> tuple[int, str, str]:
        """Times compare only within one of these."""
        device = self.evaluation.device_id if self.evaluation else ""
        return (self.submission.task_version_id, self.submission.direction, device)


@dataclass(frozen=True, kw_only=True)
class SourceDifference:
    """From the pinned source to another."""

    other: Submission
    diff: TextDiff


_MEASURES: tuple[tuple[str, Callable[[Evaluation], float | None], Callable[[float], str]], ...] = (
    (_SCORE, lambda e: e.score, times),
    ("Speedup on listed sizes", lambda e: e.speedup_best, times),
    ("Time", lambda e: e.latency_ns, duration_text),
    ("vs PyTorch eager", lambda e: e.speedup_eager, times),
    ("vs PyTorch compiled", lambda e: e.speedup_compiled, times),
    ("Speedup on unlisted sizes", lambda e: e.unlisted_speedup, times),
    ("Of the physical limit", lambda e: e.floor_fraction, percent),
    ("P score", lambda e: e.p_score, significant),
)


def columns(keys: Sequence[str], user: Viewer, device: str) -> list[Column]:
    """Of those that `user` may see, in the order of `keys`.

    The newest correct ranked evaluation stands for a submission, else its newest one; with
    `device`, of those there.
    """
    found = {str(s.pk): s for s in visible_submissions(user).filter(pk__in=keys)}
    rows = visible_evaluations(user).filter(submission__in=list(found.values()))
    if device:
        rows = rows.filter(device_id=device)
    standing: dict[str, Evaluation] = {}
    for row in reversed(asked_for(rows)[:_LOOKED_AT]):
        held = standing.get(str(row.submission_id))
        if held is None or _rank(row) >= _rank(held):
            standing[str(row.submission_id)] = row
    return [_column(found[key], standing.get(key), user) for key in keys if key in found]


def lines(found: Sequence[Column], pinned: Column) -> list[Row]:
    """Verdict and measures, each against the pinned one's."""
    return [
        plain("Verdict", map(_verdict, found)),
        *(_measured(*measure, found, pinned) for measure in _MEASURES),
    ]


def by_workload(found: Sequence[Column], pinned: Column) -> list[tuple[str, Plot]]:
    """A picture for each workload that the pinned one has: how fast each is, it being 1."""
    shared: list[tuple[str, list[tuple[Column, WorkloadRow]]]] = []
    for name, row in pinned.rows.items():
        timed = [
            (column, column.rows[name])
            for column in found
            if name in column.rows and column.rows[name].measurement
        ]
        if row.measurement and len(timed) > 1:
            shared.append((row.parameters or name, timed))
    ratios = {
        (name, column.key): _ratio(pinned.rows[row.name], row, _noise(column, pinned))
        for name, timed in shared
        for column, row in timed
    }
    axis = axis_of([end for triple in ratios.values() for end in triple])
    return [
        (
            name,
            plot(axis, [_bar(axis, c, r, ratios[name, c.key], pinned) for c, r in timed], ""),
        )
        for name, timed in shared
    ]


def source_differences(found: Sequence[Column], pinned: Column) -> list[SourceDifference]:
    """From the pinned source to each other one, within what a page may take."""
    budget = Budget()
    return [
        SourceDifference(
            other=column.submission,
            diff=diff(pinned.submission.solution.whole, column.submission.solution.whole, budget),
        )
        for column in found
        if column is not pinned
    ]


def _rank(evaluation: Evaluation) -> tuple[bool, bool, bool]:
    return (evaluation.is_correct, evaluation.mode == Mode.RANKED, evaluation.is_over)


def _column(submission: Submission, evaluation: Evaluation | None, user: Viewer) -> Column:
    result = shown_result(evaluation, user) if evaluation else None
    build = result.build if result else None
    known = {
        "Task": f"{submission.task_version.task.slug}, version {submission.task_version.number}",
        "Direction": submission.direction,
        "Agent": str(submission.agent),
        "Language model": str(submission.language_model or "–"),
        "Language": submission.get_language_display(),
        "Entered": f"{submission.created_at:%Y-%m-%d %H:%M}",
        "Device": evaluation.device.name if evaluation else "–",
        "Mode": evaluation.mode if evaluation else "–",
        "Measured": f"{evaluation.finished_at:%Y-%m-%d %H:%M}"
        if evaluation and evaluation.finished_at
        else "–",
        "Flags": " ".join(build.flags if build else ()) or "–",
        "Source lines": str(submission.solution.lines),
    }
    values = encode(result.environment) if result else {}
    values["compiler"] = build.compiler if build else ""
    known |= {capfirst(n.replace("_", " ")): str(values[n]) for n in _FACTS if values.get(n)}
    rows = {row.name: row for row in workload_rows(result)} if result else {}
    return Column(
        submission=submission, evaluation=evaluation, facts=known, rows=rows,
        noise=(evaluation.spread("latency") or 0.0) if evaluation else 0.0,
    )  # fmt: skip


def _verdict(column: Column) -> str:
    """A verdict in words, and a chip if a suspicion has to be told."""
    if (judged := column.evaluation) is None:
        return "not measured"
    words = (judged.verdict or judged.status).capitalize().replace("_", " ")
    return format_html("{}{}", words, state_chip(judged))


def _measured(
    label: str,
    measure: Callable[[Evaluation], float | None],
    shown: Callable[[float], str],
    found: Sequence[Column],
    pinned: Column,
) -> Row:
    base = measure(pinned.evaluation) if pinned.evaluation else None
    cells = []
    for column in found:
        value = measure(column.evaluation) if column.evaluation else None
        text = NONE if value is None else shown(value)
        note = _baselines(label, column) if value else ""
        differs = value != base
        if column is not pinned and value and base and not (note or _baselines(label, pinned)):
            noise = (_score_noise if label == _SCORE else _noise)(column, pinned)
            note = _apart(value / base, is_time=shown is duration_text)
            differs = abs(math.log(value / base)) > noise
            if not differs:
                note += f", within the noise of {plus_minus(noise)}"
        cells.append(Cell(text, note, differs=differs))
    return Row(label, tuple(cells))


def _baselines(label: str, column: Column) -> str:
    """What a figure over the best baseline compares with while a baseline is missing."""
    judged = column.evaluation
    if label not in _OVER_BEST or judged is None or not judged.awaits_baselines:
        return ""
    return f"over {baseline_words(judged)}"


def _apart(ratio: float, *, is_time: bool) -> str:
    """How a measure stands to the pinned one's: +12 %, or 5.5× slower beyond twice."""
    if 1 / _TWICE <= ratio <= _TWICE:
        return change(ratio)
    return f"{times(max(ratio, 1 / ratio))} {'slower' if (ratio > 1) == is_time else 'faster'}"


def _noise(column: Column, pinned: Column) -> float:
    """The largest difference between two evaluations that means nothing, as a logarithm."""
    return math.hypot(column.noise, pinned.noise)


def _score_noise(column: Column, pinned: Column) -> float:
    """The same for scores: their spreads also hold the noise of baselines."""
    found = [each.evaluation for each in (column, pinned) if each.evaluation]
    return math.hypot(*(each.score_spread or 0.0 for each in found))


def _ratio(base: WorkloadRow, row: WorkloadRow, noise: float) -> tuple[float, float, float]:
    """The speed of `row` relative to `base`; the interval includes both errors and the noise."""
    one, own = _times(base), _times(row)
    value = one.time_ns / own.time_ns
    if base is row:
        return value, one.time_ns / own.high_ns, one.time_ns / own.low_ns
    down = math.hypot(
        math.log(one.time_ns / one.low_ns), math.log(own.high_ns / own.time_ns), noise
    )
    up = math.hypot(math.log(one.high_ns / one.time_ns), math.log(own.time_ns / own.low_ns), noise)
    return value, value * math.exp(-down), value * math.exp(up)


def _bar(
    axis: Log2Axis,
    column: Column,
    row: WorkloadRow,
    ratio: tuple[float, float, float],
    pinned: Column,
) -> PlotRow:
    value, low, high = ratio
    return PlotRow(
        label=column.label,
        note=f"{duration_text(_times(row).time_ns)} {half_width(row.measurement)}",
        value=times(value),
        marks=(axis.mark("bar", value, low, high),),
        is_own=column is pinned,
    )


def _times(row: WorkloadRow) -> Measurement:
    assert row.measurement is not None, "only timed workloads are compared"
    return row.measurement

"""Each workload of a result as an interval, and in words how hidden ones went against public."""

from __future__ import annotations

from collections.abc import Sequence

from runs_app.models import Evaluation
from runs_app.submissions.page import WorkloadRow
from runs_app.submissions.pictures.plot import Plot, PlotRow, axis_of, plot, times
from tasks_app.templatetags.display import duration_text, half_width, significant

_ALIKE = 1.25
"""Public and hidden speedups within this factor of each other are called alike."""
_KINDS = (
    ("own", "this kernel, with its 95 % interval"),
    ("eager", "PyTorch eager"),
    ("compiled", "PyTorch compiled"),
    ("limit", "the limit"),
)


def workload_plot(rows: Sequence[WorkloadRow]) -> Plot | None:
    """A row for each workload with a time and a baseline; None if there is none."""
    shown = [row for row in rows if row.measurement and row.best and row.best.speedup]
    if not shown:
        return None
    speeds = {row.name: _speeds(row) for row in shown}
    ends = [end for row in shown if row.best for end in (row.best.low, row.best.high) if end]
    axis = axis_of([*(v for found in speeds.values() for v in found.values()), *ends])
    lines = []
    for row in shown:
        assert row.best is not None, "shown rows have a baseline"
        assert row.measurement is not None, "shown rows have a time"
        found = speeds[row.name]
        marks = [axis.mark(kind, value) for kind, value in found.items() if kind != "own"]
        marks.append(axis.mark("own", found["own"], row.best.low, row.best.high))
        lines.append(
            PlotRow(
                label=row.parameters or row.name,
                note=f"{duration_text(row.measurement['time_ns'])} {half_width(row.measurement)}"
                + (", hidden" if row.hidden else ""),
                value=times(float(significant(found["own"]))),
                marks=tuple(marks),
            )
        )
    used = {mark.kind for line in lines for mark in line.marks}
    kinds = [(kind, words) for kind, words in _KINDS if kind in used]
    return plot(axis, lines, "Speed by workload; 1× is the fastest baseline of each.", kinds)


def hidden_sentence(evaluation: Evaluation) -> str:
    """How the hidden workloads went against the public ones; empty where they were not timed."""
    public, hidden = evaluation.speedup_eager, evaluation.hidden_speedup
    if not public or not hidden:
        return ""
    shown = (
        f"{times(float(significant(public)))} eager's speed on public workloads,"
        f" {times(float(significant(hidden)))} on hidden ones, which no kernel could be tuned to"
    )
    ratio = public / hidden
    if ratio > _ALIKE:
        return f"{shown}. It does better where its sizes were known: elsewhere, expect the latter."
    if ratio < 1 / _ALIKE:
        return f"{shown}. It does better on sizes that it did not know: nothing speaks of tuning."
    return f"{shown}: alike, so it does as well on sizes that it did not know."


def _speeds(row: WorkloadRow) -> dict[str, float]:
    """How fast each is on one workload, its best baseline being 1."""
    assert row.best is not None, "only rows with baselines"
    assert row.best.measurement is not None, "a best baseline has a time"
    assert row.measurement is not None, "only rows with a time"
    one_ns, own_ns = row.best.measurement["time_ns"], row.measurement["time_ns"]
    found = {
        each.name: one_ns / each.measurement["time_ns"]
        for each in row.comparisons
        if each.measurement and each.measurement["time_ns"] > 0
    }
    share = row.floor_fraction or row.measured_fraction
    limit = {"limit": one_ns / (own_ns * share)} if share else {}
    return {**found, **limit, "own": one_ns / own_ns}

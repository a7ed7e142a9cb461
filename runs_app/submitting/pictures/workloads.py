"""Each workload of a result as an interval."""

from __future__ import annotations

from collections.abc import Sequence

from runs_app.submitting.page import WorkloadRow
from runs_app.submitting.pictures.plot import Plot, PlotRow, axis_of, plot, shown_ends
from tasks_app.numbers import duration_text, times
from tasks_app.templatetags.display import half_width

_KINDS = (
    ("own", "this kernel, with its 95 % interval in this evaluation"),
    ("eager", "PyTorch eager"),
    ("compiled", "PyTorch compiled"),
    ("limit", "the physical limit"),
)


def workload_plot(rows: Sequence[WorkloadRow]) -> Plot | None:
    """A row for each workload with a time and a baseline; None if there is none."""
    shown = [row for row in rows if row.measurement and row.best and row.best.speedup]
    if not shown:
        return None
    speeds = {row.name: _speeds(row) for row in shown}
    ends = [end for row in shown if row.best for end in shown_ends(row.best.low, row.best.high)]
    axis = axis_of([*(v for found in speeds.values() for v in found.values()), *ends])
    lines = []
    for row in shown:
        assert row.best is not None, "shown rows have a baseline"
        assert row.measurement is not None, "shown rows have a time"
        found = speeds[row.name]
        marks = [axis.mark(kind, value) for kind, value in found.items() if kind != "own"]
        marks.append(axis.mark("own", found["own"], *shown_ends(row.best.low, row.best.high)))
        lines.append(
            PlotRow(
                label=row.parameters or row.name,
                note=f"{duration_text(row.measurement.time_ns)} {half_width(row.measurement)}"
                + (", hidden" if row.hidden else ""),
                value=times(found["own"]),
                marks=tuple(marks),
            )
        )
    used = {mark.kind for line in lines for mark in line.marks}
    names = dict(_KINDS)
    if not any(row.floor_fraction for row in shown):
        names["limit"] = "the measured peak"
    kinds = [(kind, words) for kind, words in names.items() if kind in used]
    return plot(axis, lines, _caption(rows, shown), kinds)


def _caption(rows: Sequence[WorkloadRow], shown: Sequence[WorkloadRow]) -> str:
    """What the picture shows, and how many workloads it leaves out."""
    words = "Speed by workload; 1× is the fastest baseline of each."
    left = sum(1 for row in rows if row.measurement) - len(shown)
    if not left:
        return words
    isnt = "isn't" if left == 1 else "aren't"
    return f"{words} {left} {isnt} here, because no baseline is known yet."


def _speeds(row: WorkloadRow) -> dict[str, float]:
    """How fast each is on one workload, its best baseline being 1."""
    assert row.best is not None, "only rows with baselines"
    assert row.measurement is not None, "only rows with a time"
    one_ns, own_ns = row.best.measurement.time_ns, row.measurement.time_ns
    found = {each.name: one_ns / each.measurement.time_ns for each in row.comparisons}
    share = row.floor_fraction or row.measured_fraction
    limit = {"limit": one_ns / (own_ns * share)} if share else {}
    return {**found, **limit, "own": one_ns / own_ns}

"""Pictures that compare a result with its baselines, its rivals and limits; one is by workload."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runs_app.core.baselines.selectors import Baselines
from runs_app.core.work.result_state import compared_with
from runs_app.models import Evaluation
from runs_app.submitting.page import WorkloadRow
from runs_app.submitting.pictures.plot import Plot, PlotRow, axis_of, plot, shown_ends
from runs_app.submitting.selectors import Rival
from tasks_app.drawings import NOISE
from tasks_app.numbers import duration_text, ends, times
from tasks_app.templatetags.display import half_width

_NAMES = {"eager": "PyTorch eager", "compiled": "PyTorch compiled"}


@dataclass(frozen=True)
class _Line:
    """One row of the picture: a speed relative to the reference, which is 1."""

    name: str
    kind: str
    speed: float
    time_ns: float
    spread: float | None = None
    address: str = ""


def comparison(
    evaluation: Evaluation,
    rows: Sequence[WorkloadRow],
    rivals: Sequence[Rival],
    known: Baselines,
    libraries: Mapping[str, float],
    name: str = "This kernel",
) -> Plot | None:
    """A correct result beside others; None if there is nothing to compare it with.

    `rivals` are the leader and the author's previous result. `known` are baselines of other
    evaluations, for a result that has none of its own. `libraries` are speedups by title.
    """
    own_ns = evaluation.latency_ns
    lines = _lines(evaluation, own_ns, rows, rivals, known, libraries) if own_ns else []
    lines = [replace(line, name=name) if line.kind == "own" else line for line in lines]
    return _picture(lines, _caption(evaluation)) if len(lines) > 1 else None


def _caption(evaluation: Evaluation) -> str:
    """What the axis shows, and what it leaves out of a score."""
    more = " The score also counts unlisted sizes." if evaluation.score else ""
    return f"Times on listed sizes, on a logarithmic axis; further right is faster.{more}"


def standing(speedup: float | None, spread: float | None) -> str:
    """Tell if a speedup is faster, slower, or neutral, which means unknown or within its noise."""
    if speedup is None:
        return "neutral"
    width = math.log(1 + NOISE) if spread is None else spread
    if math.log(speedup) > width:
        return "faster"
    return "slower" if math.log(speedup) < -width else "neutral"


def _lines(
    evaluation: Evaluation,
    own_ns: float,
    rows: Sequence[WorkloadRow],
    rivals: Sequence[Rival],
    known: Baselines,
    libraries: Mapping[str, float],
) -> list[_Line]:
    best, spread = evaluation.speedup_best, evaluation.spread("speedup")
    own = {"eager": evaluation.speedup_eager, "compiled": evaluation.speedup_compiled}
    measured = {**own, **libraries}
    times_ns = {name: own_ns * value for name, value in measured.items() if value}
    times_ns = times_ns or (dict(known.times_ns) if best is None else {})
    one_ns = own_ns * best if best else min(times_ns.values(), default=own_ns)
    if best is None:
        spread = evaluation.spread("latency")
    this = _Line("This kernel", "own", one_ns / own_ns, own_ns, spread)
    baselines = {_NAMES.get(name, name): (name, ns) for name, ns in sorted(times_ns.items())}
    same = next((n for n, (_, ns) in baselines.items() if math.isclose(ns, one_ns)), "")
    so_far = "" if compared_with(evaluation) in ("", "best") else " so far"
    best_name = f"Best baseline{so_far}: {same}" if same else f"Best baseline{so_far}"
    found = [this, _Line(best_name, "best", 1.0, one_ns)] if best else [this]
    found += [
        _Line(label, name, one_ns / ns, ns)
        for label, (name, ns) in baselines.items()
        if not (best and label == same)
    ]
    for rival in rivals:
        ns = rival.evaluation.latency_ns
        if ns and rival.evaluation.pk != evaluation.pk:
            address = rival.evaluation.get_absolute_url()
            kind = "leader" if rival.is_leader else "before"
            width = rival.evaluation.spread("latency")
            found.append(_Line(rival.name, kind, one_ns / ns, ns, width, address))
    limit = _limit(evaluation, rows)
    if limit is not None:
        name, share = limit
        found.append(_Line(name, "limit", one_ns / (own_ns * share), own_ns * share))
    return found


def _limit(evaluation: Evaluation, rows: Iterable[WorkloadRow]) -> tuple[str, float] | None:
    """The most that the device can do: the limit's name, and its time over the kernel's."""
    if evaluation.floor_fraction:
        passed = evaluation.floor_fraction > 1
        name = f"{evaluation.task_version.dtype} peak" if passed else "Physical limit"
        return name, evaluation.floor_fraction
    shares = [row.measured_fraction for row in rows if not row.hidden]
    known = [share for share in shares if share]
    if not known or len(known) < len(shares):
        return None
    share = statistics.geometric_mean(known)
    return ("Measured peak", share) if share <= 1 else None  # it was measured too low


def _picture(lines: Sequence[_Line], caption: str) -> Plot:
    axis = axis_of(end for line in lines for end in (line.speed, *_ends(line)))
    ordered = sorted(lines, key=lambda line: -line.speed)
    rows = [
        PlotRow(
            label=line.name,
            value=duration_text(line.time_ns),
            note=times(line.speed) + (" on listed sizes" if line.kind == "own" else ""),
            marks=(axis.mark(line.kind, line.speed, *_ends(line)),),
            address=line.address,
            is_own=line.kind == "own",
        )
        for line in ordered
    ]
    return plot(axis, rows, caption)


def _ends(line: _Line) -> tuple[float, float] | tuple[()]:
    if line.spread is None:
        return ()
    return shown_ends(*ends(line.speed, line.spread))


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
    return plot(axis, lines, _caption_by_workload(rows, shown), kinds)


def _caption_by_workload(rows: Sequence[WorkloadRow], shown: Sequence[WorkloadRow]) -> str:
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
    measured = row.measured_fraction or 0.0
    share = row.floor_fraction or (measured if measured <= 1 else 0.0)  # above, it's too low
    limit = {"limit": one_ns / (own_ns * share)} if share else {}
    return {**found, **limit, "own": one_ns / own_ns}

"""The number that a result comes to, and the picture of what it is measured against."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_runner.data.verdict import Mode
from runs_app.baselines.selectors import Baselines
from runs_app.models import Evaluation
from runs_app.submissions.page import WorkloadRow
from runs_app.submissions.pictures.plot import Plot, PlotRow, axis_of, plot, times
from runs_app.submissions.selectors import Rival
from tasks_app.drawings import NOISE
from tasks_app.templatetags.display import duration_text, significant

WIDE = 0.10
"""Half an interval over its value from which on the page says that the host was noisy."""
_NAMES = {"eager": "PyTorch eager", "compiled": "PyTorch compiled"}


@dataclass(frozen=True, kw_only=True)
class Headline:
    """What leads the page of a correct result.

    `number` is the speedup over the best baseline, or the time where no baseline is known;
    `missing` then says why. `notes` are sentences on how sure it is and how it stands to others.
    """

    number: str
    unit: str
    kind: str
    interval: str
    caption: str
    missing: str
    notes: tuple[str, ...]
    picture: Plot | None


@dataclass(frozen=True)
class _Line:
    """One row of the picture: how fast something is, the reference being 1."""

    name: str
    kind: str
    speed: float
    time_ns: float
    spread: float | None = None
    address: str = ""


def headline(
    evaluation: Evaluation,
    document: Mapping[str, Any],
    rows: Sequence[WorkloadRow],
    rivals: Sequence[Rival],
    known: Baselines,
) -> Headline | None:
    """The headline of a correct result; None for any other.

    `rivals` are the leader and the author's result before; `known` are baselines of other
    evaluations, for a result that has none of its own.
    """
    own_ns = evaluation.latency_ns
    if own_ns is None:
        return None
    speedup, spread = evaluation.speedup_best, evaluation.speedup_spread
    lines = _lines(evaluation, own_ns, rows, rivals, known)
    number, unit = (
        (significant(speedup), "×") if speedup else tuple(duration_text(own_ns).split(" ", 1))
    )
    width = spread if speedup else evaluation.latency_spread
    return Headline(
        number=number,
        unit=unit,
        kind=standing(speedup, spread),
        interval=_interval(speedup or own_ns, width, is_time=not speedup),
        caption="the speed of the best baseline, over all public workloads"
        if speedup
        else "a call, the geometric mean of the public workloads",
        missing="" if speedup else _missing(evaluation, document, known),
        notes=tuple(_notes(evaluation, document, own_ns, rivals)),
        picture=_picture(lines) if len(lines) > 1 else None,
    )


def standing(speedup: float | None, spread: float | None) -> str:
    """Whether a speedup is faster, slower, or neutral: unknown, or within its noise."""
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
) -> list[_Line]:
    best, spread = evaluation.speedup_best, evaluation.speedup_spread
    measured = {"eager": evaluation.speedup_eager, "compiled": evaluation.speedup_compiled}
    times_ns = {name: own_ns * value for name, value in measured.items() if value}
    times_ns = times_ns or (dict(known.times_ns) if best is None else {})
    one_ns = own_ns * best if best else min(times_ns.values(), default=own_ns)
    if best is None:
        spread = evaluation.latency_spread
    own = _Line("This kernel", "own", one_ns / own_ns, own_ns, spread)
    found = [own, _Line("Best baseline", "best", 1.0, one_ns)] if best else [own]
    found += [
        _Line(_NAMES.get(name, name), name, one_ns / ns, ns)
        for name, ns in sorted(times_ns.items())
    ]
    for rival in rivals:
        ns = rival.evaluation.latency_ns
        if ns and rival.evaluation.pk != evaluation.pk:
            address = rival.evaluation.submission.get_absolute_url()
            kind = "leader" if rival.is_leader else "before"
            width = rival.evaluation.latency_spread
            found.append(_Line(rival.name, kind, one_ns / ns, ns, width, address))
    limit = _limit(evaluation, rows)
    if limit is not None:
        name, share = limit
        found.append(_Line(name, "limit", one_ns / (own_ns * share), own_ns * share))
    return found


def _limit(evaluation: Evaluation, rows: Iterable[WorkloadRow]) -> tuple[str, float] | None:
    """What the device could do at most: its name, and its time over the kernel's."""
    if evaluation.floor_fraction:
        return "Physical limit", evaluation.floor_fraction
    shares = [row.measured_fraction for row in rows if not row.hidden]
    known = [share for share in shares if share]
    if not known or len(known) < len(shares):
        return None
    return "Measured peak", math.exp(sum(map(math.log, known)) / len(known))


def _picture(lines: Sequence[_Line]) -> Plot:
    axis = axis_of(end for line in lines for end in (line.speed, *_ends(line)))
    ordered = sorted(lines, key=lambda line: -line.speed)
    rows = [
        PlotRow(
            label=line.name,
            value=times(float(significant(line.speed))),
            note=duration_text(line.time_ns),
            marks=(axis.mark(line.kind, line.speed, *_ends(line)),),
            address=line.address,
            is_own=line.kind == "own",
        )
        for line in ordered
    ]
    return plot(axis, rows, "Speed on a logarithmic axis, further right is faster.")


def _ends(line: _Line) -> tuple[float, float] | tuple[()]:
    if line.spread is None:
        return ()
    return line.speed * math.exp(-line.spread), line.speed * math.exp(line.spread)


def _interval(value: float, spread: float | None, *, is_time: bool) -> str:
    if spread is None:
        return ""
    low, high = value * math.exp(-spread), value * math.exp(spread)
    shown = (duration_text(low), duration_text(high)) if is_time else (times(low), times(high))
    return f"{shown[0]} to {shown[1]}"


def _missing(evaluation: Evaluation, document: Mapping[str, Any], known: Baselines) -> str:
    if document.get("pending_baselines"):
        return "No speedup yet: its baselines are still being measured."
    if evaluation.mode == Mode.TEST:
        return "No speedup: a test makes too few calls for one. Quick or ranked mode gives it."
    if evaluation.mode == Mode.RANKED:
        return "No speedup: none of the task's baselines could be measured here."
    if known.times_ns:
        return (
            "No speedup of its own: this runner had no baselines of the task at hand. The picture"
            " takes them from an earlier evaluation on this device."
        )
    return (
        f"No speedup: {evaluation.mode} mode only uses baselines that are known, and nobody has"
        " measured them on this device yet. A ranked evaluation does."
    )


def _notes(
    evaluation: Evaluation, document: Mapping[str, Any], own_ns: float, rivals: Iterable[Rival]
) -> Iterable[str]:
    for rival in rivals:
        ns = rival.evaluation.latency_ns
        if not ns:
            continue
        if rival.evaluation.pk == evaluation.pk:
            yield "It leads its board."
        else:
            width = math.hypot(evaluation.latency_spread or 0, rival.evaluation.latency_spread or 0)
            yield f"{_against(ns / own_ns, width)} {rival.phrase}."
    spread = evaluation.latency_spread or 0.0
    if spread > WIDE:
        yield (
            f"Its time is known to ±{spread * 100:.0f} % only: its calls took unlike times, as on a"
            " host that is busy with other work. Running it again at a quieter time may narrow it."
        )


def _against(ratio: float, width: float) -> str:
    """How this kernel stands to another, of which it has `ratio` times the speed."""
    if abs(math.log(ratio)) <= width:
        return "As fast, within the noise, as"
    if ratio > 1:
        return f"{times(float(significant(ratio)))} as fast as"
    return f"At {significant(ratio * 100)} % of the speed of"

"""How the best of a run grew, over its evaluations, its money and its time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpu_runner.data.verdict import Verdict
from runs_app.models import Run
from runs_app.optimiser.evolve.evaluations import LAST_MODES
from runs_app.optimiser.selectors.compared import SearchSpeed, baseline_of, search_speeds
from runs_app.optimiser.verifiers.figures import layout

AXES = {
    "evaluations": "Evaluations",
    "usd": "Cost (USD)",
    "minutes": "Running time (minutes)",
}
VALUES = {
    "seed": "Speedup over the run's seed",
    "baseline": "Speedup over the best baseline, listed sizes",
    "time": "Time of the fastest kernel (µs)",
}

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
_MOVES = {"started": True, "resumed": True, "paused": False, "stopped": False, "finished": False}
_TOLD = (*_MOVES, "measured", "tried", "searched", "extended")


@dataclass(frozen=True, kw_only=True)
class Point:
    """The best so far, after that many evaluations, dollars, and seconds of running."""

    evaluations: int
    usd: float
    active_s: float
    latency_ns: float
    speedup: float | None  # over the best baseline on listed sizes, if all are known
    spread: float | None  # half the 95 % interval of the speedup, over it


@dataclass(kw_only=True)
class _Clock:
    """Seconds that a run has searched; the ranking of its best is no running time."""

    seconds: float = 0.0
    since: datetime | None = None
    is_running: bool = False
    searched: dict[str, object] | None = None
    finished: dict[str, object] | None = None

    def apply(self, kind: str, payload: dict[str, object], at: datetime) -> None:
        """Go on until an event, and see what it changes."""
        if self.since is not None:
            self.seconds += max((at - self.since).total_seconds(), 0.0)
        self.is_running = _MOVES.get(kind, self.is_running)
        match kind:
            case "searched":
                self.searched = payload
            case "finished":
                self.finished = payload
            case "extended":
                self._extend(has_more=bool(payload.get("parameters")))
        self.since = at if self.is_running and self.searched is None else None

    def _extend(self, *, has_more: bool) -> None:
        """A search that a cap has ended goes on, and any that has got more to do."""
        if self.searched is not None and (self.searched.get("by_budget") or has_more):
            self.searched = None
        if self.finished is not None and (self.finished.get("by_budget") or has_more):
            self.finished, self.is_running = None, True


def curve(run: Run) -> list[Point]:
    """The best so far: a point for each improvement, and one for the end if more came after it.

    Evaluations are those that caps count, but for lost ones. Times are the search's
    own, which compare with each other; what was refused since is on no curve.
    """
    evaluations, usd, clock = 0, 0.0, _Clock()
    paid, now = deque(_payments(run)), _times(run)
    found: list[Point] = []
    best: SearchSpeed | None = None
    rows = run.events.filter(kind__in=_TOLD).order_by("seq")
    for kind, payload, at in rows.values_list("kind", "payload", "created_at"):
        clock.apply(kind, payload, at)
        while paid and paid[0][0] <= at:
            usd += paid.popleft()[1]
        is_measured = kind == "measured" and _counts(payload)
        evaluations += kind == "tried" or is_measured
        time = _time(payload, now) if is_measured else None
        if time is not None and (best is None or time.ns < best.ns):
            best = time
            found.append(_point(best, evaluations, usd, clock.seconds))
    if best is not None:
        usd += sum(cost for _, cost in paid)
        end = _point(best, evaluations, usd, clock.seconds)
        found += [end] if end != found[-1] else []
    return found


def _counts(payload: dict[str, object]) -> bool:
    """Whether an evaluation is one of the search, and said something."""
    return payload["mode"] not in LAST_MODES and payload["verdict"] != Verdict.SYSTEM_ERROR


def _time(payload: dict[str, Any], now: dict[int, SearchSpeed | None]) -> SearchSpeed | None:
    """The candidate's time in the search, or the event's where its row says nothing."""
    ns, spread = payload.get("latency_ns"), payload.get("spread")
    told = SearchSpeed(ns=ns, spread=spread, over_baseline=None, over_spread=None) if ns else None
    return now.get(payload["candidate"], told)


def _times(run: Run) -> dict[int, SearchSpeed | None]:
    """Times by candidate, None for what is refused, of those that hardware has spoken of."""
    rows = list(run.candidates.exclude(verdict="").only("number", "run_id"))
    baseline = baseline_of(run)
    whole = baseline if baseline and baseline.is_whole else None
    return {row.number: None for row in rows} | search_speeds(run, rows, whole)


def _payments(run: Run) -> list[tuple[datetime, float]]:
    """When each call that cost something ended, and what it cost, in order."""
    rows = run.calls.filter(ended_at__isnull=False, cost_usd__gt=0).order_by("ended_at")
    return [(at, cost) for at, cost in rows.values_list("ended_at", "cost_usd") if at and cost]


def _point(best: SearchSpeed, evaluations: int, usd: float, seconds: float) -> Point:
    return Point(
        evaluations=evaluations,
        usd=usd,
        active_s=seconds,
        latency_ns=best.ns,
        speedup=best.over_baseline,
        spread=best.over_spread,
    )


def best_so_far_figure(
    curves: Iterable[tuple[Run, Sequence[Point]]], x: str, y: str
) -> dict[str, object] | None:
    """A step line for each run: the best so far over what it took, by keys of AXES and VALUES.

    None where no run has a point. A run whose cost nobody knows has none over money.
    """
    traces, is_empty = [], True
    for slot, (run, points) in enumerate(curves):
        is_told = x != "usd" or run.usd is not None
        pairs = [(_x(point, x), _y(point, run, y)) for point in points if is_told]
        known = [(at, value) for at, value in pairs if value is not None]
        is_empty &= not pairs
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": str(run),
                "x": [round(at, 6) for at, _ in known],
                "y": [round(value, 5) for _, value in known],
                "line": {"shape": "hv", "width": 2, "dash": _DASHES[slot % len(_DASHES)]},
                "marker": {"size": 6, "symbol": _SYMBOLS[slot % len(_SYMBOLS)]},
                "meta": {"colour": slot},
                "hovertemplate": "%{y:.4g} at %{x:.4g}<extra>%{fullData.name}</extra>",
            }
        )
    found = layout(AXES[x], VALUES[y])
    found["xaxis"]["rangemode"] = "tozero"
    return None if is_empty else {"data": traces, "layout": found}


def _x(point: Point, x: str) -> float:
    return point.active_s / 60 if x == "minutes" else float(getattr(point, x))


def _y(point: Point, run: Run, y: str) -> float | None:
    if y == "baseline":
        return point.speedup
    if y == "time":
        return point.latency_ns / 1000
    seed = run.seed_latency_ns
    return seed / point.latency_ns if seed else None

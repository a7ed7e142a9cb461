"""Runs side by side, and settings side by side over repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from runs_app.optimisation.compare.figures import AXES, VALUES, best_so_far_figure
from runs_app.optimisation.compare.selectors import RunSummary, summaries
from runs_app.optimisation.selectors.runs import visible_runs
from runs_app.optimisation.selectors.settings import differing
from runs_app.plotly_policy import PLOTLY_STYLES
from tasks_app.parameters import address, takes

MOST = 5
_OFFERED = 100


@dataclass(frozen=True)
class Cell:
    """A number of one run, how to write it, and its distance from the pinned run's."""

    value: float | None
    delta: str = ""


@dataclass(frozen=True)
class Line:
    """One measure over all runs; `kind` names how its numbers are written."""

    label: str
    kind: str
    cells: tuple[Cell, ...]


_MEASURES: tuple[tuple[str, str, Callable[[RunSummary], float | None]], ...] = (
    ("Best speedup over the seed", "ratio", lambda s: s.speedup_seed),
    ("Best speedup over the best baseline", "speedup", lambda s: s.speedup_baseline),
    ("Time of the best kernel", "duration", lambda s: s.run.best_latency_ns),
    ("Cost", "usd", lambda s: s.run.usd),
    ("Tokens", "amount", lambda s: s.run.tokens),
    ("Evaluations", "count", lambda s: s.run.evaluations),
    ("Time running", "seconds", lambda s: s.active_s),
    ("Candidates", "count", lambda s: s.run.candidates_made),
    ("Correct, of measured candidates", "share", lambda s: s.correct_share),
    ("Correct, of proposals", "share", lambda s: s.valid_share),
)


@require_safe
@csp_update({"style-src": PLOTLY_STYLES})
@takes("run", "pin", "x", "y", "all")
def compare(request: HttpRequest) -> HttpResponse:
    """The runs of the address, side by side: `run` up to five times, `pin`, `x`, `y`, `all`."""
    wanted = list(dict.fromkeys(request.GET.getlist("run")))
    ids, problems = _ids(wanted)
    rows = summaries(visible_runs(request.user).filter(pk__in=ids), timezone.now(), points=True)
    rows.sort(key=lambda row: ids.index(row.run.pk))
    if len(rows) < len(ids):
        problems.append("A run of this address does not exist, or it is private.")
    pinned = next((r for r in rows if str(r.run.pk) == request.GET.get("pin")), None)
    pinned = pinned or (rows[0] if rows else None)
    x = _choice(request.GET, "x", AXES)
    y = _choice(request.GET, "y", VALUES)
    show_all = request.GET.get("all") == "1"
    context = {
        "problems": problems,
        "summaries": rows,
        "columns": [_column(request.GET, row, pinned) for row in rows],
        "pinned": pinned,
        "lines": _lines(rows, pinned),
        "failures": _failures(rows),
        "settings": _settings(rows, show_all=show_all),
        "show_all": show_all,
        "toggle_all": address(request.GET, all=None if show_all else "1"),
        "xs": [(name, label, address(request.GET, x=name)) for name, label in AXES.items()],
        "ys": [(name, label, address(request.GET, y=name)) for name, label in VALUES.items()],
        "x": x,
        "y": y,
        "figure": best_so_far_figure(rows, x, y) if any(r.points for r in rows) else None,
        "mixed": len({_problem(row) for row in rows}) > 1,
        "offered": _offered(request, ids) if len(rows) < MOST else [],
        "kept": [(name, value) for name, value in request.GET.items() if name in ("x", "y", "all")],
    }
    return render(
        request,
        "runs_app/optimisation/compare/compare.html",
        context,
        status=400 if problems else 200,
    )


def _ids(wanted: Sequence[str]) -> tuple[list[UUID], list[str]]:
    ids, problems = [], []
    for text in wanted:
        try:
            ids.append(UUID(text))
        except ValueError:
            problems.append(f"run: {text[:60]!r} is no run's number; copy it from a run's address.")
    ids = list(dict.fromkeys(ids))
    if len(ids) > MOST:
        problems.append(f"run: at most {MOST} runs fit side by side; the first {MOST} are shown.")
    return ids[:MOST], problems


def _column(query: QueryDict, row: RunSummary, pinned: RunSummary | None) -> dict[str, Any]:
    others = [text for text in query.getlist("run") if text != str(row.run.pk)]
    return {
        "run": row.run,
        "pinned": row is pinned,
        "pin": address(query, pin=str(row.run.pk)),
        "remove": address(query, run=others),
    }


def _lines(rows: Sequence[RunSummary], pinned: RunSummary | None) -> list[Line]:
    lines = []
    for label, kind, measure in _MEASURES:
        base = measure(pinned) if pinned else None
        cells = tuple(
            Cell(value := measure(row), "" if row is pinned else delta(value, base, kind))
            for row in rows
        )
        lines.append(Line(label, kind, cells))
    return lines


def delta(value: float | None, base: float | None, kind: str) -> str:
    """Distance from the pinned run: in points for shares, else in percent; empty if unknown."""
    if value is None or base is None:
        return ""
    if kind == "share":
        return f"{(value - base) * 100:+.1f} points"
    return f"{(value / base - 1) * 100:+.1f} %" if base else ""


def _failures(rows: Sequence[RunSummary]) -> list[tuple[str, list[int]]]:
    names = sorted({name for row in rows for name, count in row.failures.items() if count})
    return [(name, [row.failures.get(name, 0) for row in rows]) for name in names]


def _settings(
    rows: Sequence[RunSummary], *, show_all: bool
) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Name and, for each run, the value and whether it is unlike the first one's."""
    columns = [row.settings for row in rows]
    unlike = differing(columns)
    every = list(dict.fromkeys(name for column in columns for name in column))
    return [
        (name, [(c.get(name, ""), c.get(name, "") != columns[0].get(name, "")) for c in columns])
        for name in (every if show_all else unlike)
    ]


def _offered(request: HttpRequest, ids: Sequence[UUID]) -> list[Any]:
    return list(visible_runs(request.user).exclude(pk__in=ids)[:_OFFERED])


def _problem(row: RunSummary) -> tuple[int, str, str]:
    return (row.run.task_version_id, row.run.device_id, row.run.direction)


def _choice(query: QueryDict, name: str, choices: dict[str, str]) -> str:
    value = query.get(name, "")
    return value if value in choices else next(iter(choices))

"""Runs side by side, and settings side by side over repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from runs_app.core.plotly_policy import PLOTLY_STYLES
from runs_app.features.compare.ablation import Group, group, telling, varying
from runs_app.features.compare.choice import MOST, chosen, pinned_key
from runs_app.features.compare.curve import AXES, VALUES, best_so_far_figure
from runs_app.features.compare.page import (
    METRICS,
    AblationPage,
    Cell,
    Measure,
    RunColumn,
    RunsPage,
)
from runs_app.features.compare.runs import (
    RunSummary,
    ablation_runs,
    problems_with_runs,
    runs_of,
    summaries,
)
from runs_app.features.compare.settings import differing
from runs_app.models import Run
from runs_app.optimiser.selectors.runs import visible_runs
from tasks_app.numbers import change, signed
from tasks_app.parameters import address, takes
from tasks_app.spreadsheet import FORMS, download

_OFFERED = 100
_MEASURES: tuple[tuple[str, str, Callable[[RunSummary], float | None]], ...] = (
    ("Best speedup over the seed", "ratio", lambda s: s.speedup_seed),
    ("Best speedup over the best baseline", "speedup", lambda s: s.speedup_baseline),
    ("Time of the best kernel", "duration", lambda s: s.run.best_latency_ns),
    ("Cost", "usd", lambda s: s.run.usd),
    ("Tokens", "amount", lambda s: s.run.tokens),
    ("Evaluations", "count", lambda s: s.run.evaluations),
    ("Time running", "seconds", lambda s: s.active_s),
    ("Candidates", "count", lambda s: s.run.candidates_made),
    ("Correct among measured candidates", "share", lambda s: s.correct_share),
    ("Correct among proposals", "share", lambda s: s.valid_share),
)


@require_safe
@csp_update({"style-src": PLOTLY_STYLES})
@takes("run", "pin", "x", "y", "all")
def compare_runs(request: HttpRequest) -> HttpResponse:
    """The runs of the address, side by side: `run` up to five times, `pin`, `x`, `y`, `all`."""
    choice = chosen(request.GET, "run", numbers=True)
    keys, problems = choice.keys, choice.problems
    rows = summaries(visible_runs(request.user).filter(pk__in=keys), timezone.now(), points=True)
    rows.sort(key=lambda row: keys.index(str(row.run.pk)))
    if len(rows) < len(keys):
        problems.append("There is no run at this address, or it is private.")
    key = pinned_key(request.GET, [str(row.run.pk) for row in rows])
    pinned = next((row for row in rows if str(row.run.pk) == key), None)
    x = _choice(request.GET, "x", AXES)
    y = _choice(request.GET, "y", VALUES)
    show_all = request.GET.get("all") == "1"
    page = RunsPage(
        problems=problems,
        summaries=rows,
        columns=[_column(request.GET, row, pinned) for row in rows],
        pinned=pinned,
        lines=_lines(rows, pinned),
        failures=_failures(rows),
        settings=_settings(rows, show_all=show_all),
        show_all=show_all,
        toggle_all=address(request.GET, all=None if show_all else "1"),
        xs=[(name, label, address(request.GET, x=name)) for name, label in AXES.items()],
        ys=[(name, label, address(request.GET, y=name)) for name, label in VALUES.items()],
        x=x,
        y=y,
        figure=best_so_far_figure([(r.run, r.points) for r in rows], x, y),
        mixed=len({_problem(row) for row in rows}) > 1,
        offered=_offered(request, keys) if len(rows) < MOST else [],
        kept=[(name, value) for name, value in request.GET.items() if name in ("x", "y", "all")],
    )
    status = 400 if problems else 200
    return render(request, "compare/runs.html", vars(page), status=status)


def _column(query: QueryDict, row: RunSummary, pinned: RunSummary | None) -> RunColumn:
    others = [text for text in query.getlist("run") if text != str(row.run.pk)]
    return RunColumn(
        run=row.run,
        pinned=row is pinned,
        pin=address(query, pin=str(row.run.pk)),
        remove=address(query, run=others),
    )


def _lines(rows: Sequence[RunSummary], pinned: RunSummary | None) -> list[Measure]:
    lines = []
    for label, kind, measure in _MEASURES:
        base = measure(pinned) if pinned else None
        cells = tuple(
            Cell(value := measure(row), "" if row is pinned else delta(value, base, kind))
            for row in rows
        )
        lines.append(Measure(label, kind, cells))
    return lines


def delta(value: float | None, base: float | None, kind: str) -> str:
    """Distance from the pinned run: in points for shares, else in percent; empty if unknown."""
    if value is None or base is None:
        return ""
    if kind == "share":
        return signed((value - base) * 100, "points")
    return change(value / base) if base else ""


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


def _offered(request: HttpRequest, keys: Sequence[str]) -> list[Run]:
    return list(visible_runs(request.user).exclude(pk__in=keys)[:_OFFERED])


def _problem(row: RunSummary) -> tuple[int, str, str]:
    return (row.run.task_version_id, row.run.device_id, row.run.direction)


def _choice(query: QueryDict, name: str, choices: dict[str, str]) -> str:
    value = query.get(name, "")
    return value if value in choices else next(iter(choices))


@require_safe
@takes("task", "device", "direction", "problem", "metric", "factor", "format")
def ablation(request: HttpRequest) -> HttpResponse:
    """The table of the address: `task`, `device`, `direction`, `factor`s, `metric`, `format`."""
    problems = problems_with_runs(request.user)
    problem = _problem_of(request, problems)
    if problem is None:
        empty = AblationPage(problems=problems, unknown=bool(request.GET.get("task")))
        return render(request, "compare/ablation.html", vars(empty))
    metric = request.GET.get("metric", "")
    metric = metric if metric in METRICS else "seed"
    finished = runs_of(request.user, problem, metric, timezone.now())
    found = [run for run in finished if run.measured]  # the others tried nothing
    offered = varying(found)
    wanted = [name for name in request.GET.getlist("factor") if name in offered]
    factors = wanted or list(telling(found))
    groups = group(found, factors)
    if request.GET.get("format") in FORMS:
        return download(request.GET["format"], [record(each) for each in groups], "groups")
    unfinished = ablation_runs(request.user, *problem).exclude(status=Run.Status.FINISHED).count()
    page = AblationPage(
        problems=problems,
        chosen=problem,
        metric=metric,
        others=sorted((name for name in offered if name not in factors), key=str.casefold),
        factors=factors,
        by_default=not wanted,
        groups=groups,
        repeated=any(len(each.runs) > 1 for each in groups),
        total=len(found),
        unmeasured=len(finished) - len(found),
        looked_at=len(finished),
        unfinished=unfinished,
        export=request.GET.urlencode(),
    )
    return render(request, "compare/ablation.html", vars(page))


def _problem_of(
    request: HttpRequest, problems: Sequence[tuple[str, str, str, int]]
) -> tuple[str, str, str] | None:
    """The address's problem; the one with most runs if it names none; None if it has no runs."""
    task, device, direction = (request.GET.get(n, "") for n in ("task", "device", "direction"))
    if "/" in request.GET.get("problem", ""):
        task, device, direction = [*request.GET["problem"].split("/"), "", ""][:3]
    fitting = [
        (row[0], row[1], row[2])
        for row in problems
        if (not task or row[0] == task)
        and (not device or row[1] == device)
        and (not direction or row[2] == direction)
    ]
    return fitting[0] if fitting else None


def record(each: Group) -> dict[str, object]:
    """A group as one flat record."""
    interval = each.interval
    return {
        **dict(each.values),
        "rank": each.rank or None,
        "tied": each.tied,
        "runs": len(each.runs),
        "speedup": interval.mean if interval else None,
        "speedup_low": interval.low if interval and interval.method != "none" else None,
        "speedup_high": interval.high if interval and interval.method != "none" else None,
        "interval": interval.method if interval else None,
        "improved_share": each.improved_share,
        "correct_share": each.correct_share,
        "mean_usd": each.mean_usd,
        "mean_tokens": each.mean_tokens,
        "mixes": ", ".join(each.mixes),
        "run_ids": " ".join(run.run for run in each.runs),
    }

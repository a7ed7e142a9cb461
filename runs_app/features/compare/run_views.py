"""Runs side by side, and settings side by side over repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from csp.decorators import csp_update
from django.contrib.humanize.templatetags.humanize import intcomma
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from runs_app.core.plotly_policy import PLOTLY_STYLES
from runs_app.features.compare.ablation import Group, group, telling, varying
from runs_app.features.compare.choice import NONE, Cell, Choice, Kind, Row, Table, chosen, plain
from runs_app.features.compare.curve import AXES, VALUES, best_so_far_figure
from runs_app.features.compare.page import METRICS, AblationPage, RunsPage
from runs_app.features.compare.runs import (
    RunSummary,
    ablation_runs,
    problems_with_runs,
    runs_of,
    summaries,
)
from runs_app.models import Run
from runs_app.optimiser.page import strategy_title
from runs_app.optimiser.selectors.compared import baseline_of
from runs_app.optimiser.selectors.runs import visible_runs
from runs_app.optimiser.tags import UNRANKED, clock
from runs_app.submitting.tags import verdict_words
from tasks_app.numbers import change, percent, signed, times, usd
from tasks_app.parameters import address, takes
from tasks_app.people import Viewer
from tasks_app.spreadsheet import FORMS, download
from tasks_app.templatetags.display import UNPRICED, amount, duration

_RUNS = Kind(name="run", one="run", many="runs", repeated=("all", "x", "y"), in_files=False)
_OFFERED = 100
_OVER_SEED = "Best speedup over the seed"
_OVER_BASELINE = "Best speedup over the best baseline"
_BEST_TIME = "Time of the best kernel"
_OF_TWO_KINDS = (_OVER_BASELINE, _BEST_TIME)  # of a ranking, or of the search
_DIFFERENCES = "Differences are relative to the pinned run."
_SEEDS_DIFFER = (
    f"{_DIFFERENCES} These runs start from different seed kernels, so their speedups over the seed "
    "can't be compared."
)
_MEASURES: tuple[tuple[str, Callable[[float], str], Callable[[RunSummary], float | None]], ...] = (
    (_OVER_SEED, times, lambda s: s.speedup_seed),
    (_OVER_BASELINE, times, lambda s: s.speedup_baseline),
    (_BEST_TIME, duration, lambda s: s.run.best_latency_ns),
    ("Time of the baseline, listed sizes", duration, lambda s: _baseline_ns(s.run)),
    ("Cost", usd, lambda s: s.run.usd),
    ("Tokens", amount, lambda s: s.run.tokens),
    ("Evaluations", intcomma, lambda s: s.run.evaluations),
    ("Time running", clock, lambda s: s.active_s),
    ("Candidates", intcomma, lambda s: s.run.candidates_made),
    ("Share of measured candidates that were correct", percent, lambda s: s.correct_share),
    ("Candidates that weren't measured", intcomma, lambda s: s.unmeasured),
)


@require_safe
@csp_update({"style-src": PLOTLY_STYLES})
@takes("run", "pin", "x", "y", "all")
def compare_runs(request: HttpRequest) -> HttpResponse:
    """The runs of the address, side by side: `run` up to five times, `pin`, `x`, `y`, `all`."""
    choice = chosen(request.GET, _RUNS, numbers=True)
    keys = choice.keys
    rows = summaries(visible_runs(request.user).filter(pk__in=keys), timezone.now(), points=True)
    rows.sort(key=lambda row: keys.index(str(row.run.pk)))
    if len(rows) < len(keys):
        choice.problems.append("There is no run at this address, or it is private.")
    pinned = choice.settle({str(row.run.pk): row for row in rows})
    page = _runs_page(request.user, choice, rows, pinned)
    status = 400 if choice.problems else 200
    return render(request, "compare/runs.html", vars(page), status=status)


def _runs_page(
    user: Viewer, choice: Choice, rows: list[RunSummary], pinned: RunSummary | None
) -> RunsPage:
    query, offered = choice.query, _offered(user, choice.keys) if choice.has_room else []
    if pinned is None:
        return RunsPage(choice=choice, offered=offered)
    x, y = _choice(query, "x", AXES), _choice(query, "y", VALUES)
    heads = [
        choice.head(str(run.pk), str(run), run.get_absolute_url(), _where(run), run.status.title())
        for run in (row.run for row in rows)
    ]
    seeds_differ = len({row.settings["seed kernel"] for row in rows}) > 1
    lines = [
        _measured(*measure, rows, None if seeds_differ and measure[0] == _OVER_SEED else pinned)
        for measure in _MEASURES
    ]
    return RunsPage(
        choice=choice,
        offered=offered,
        results=Table("Measure", heads, lines, _SEEDS_DIFFER if seeds_differ else _DIFFERENCES),
        mixed=len({_problem(row) for row in rows}) > 1,
        summaries=rows,
        failures=Table("Failure", heads, _failures(rows)),
        settings=choice.texts("Setting", heads, [row.settings for row in rows]),
        xs=[(name, label, address(query, x=name)) for name, label in AXES.items()],
        ys=[(name, label, address(query, y=name)) for name, label in VALUES.items()],
        x=x,
        y=y,
        figure=best_so_far_figure([(row.run, row.points) for row in rows], x, y),
    )


def _baseline_ns(run: Run) -> float | None:
    """Hosts of a device differ: a run's speedups are over the baseline that was measured for it."""
    baseline = baseline_of(run)
    return baseline.ns if baseline else None


def _where(run: Run) -> str:
    direction = "" if run.direction == "forward" else f", {run.direction}"
    return f"{run.task_version.task.slug} on {run.device}{direction}"


def _measured(
    label: str,
    shown: Callable[[float], str],
    measure: Callable[[RunSummary], float | None],
    rows: Sequence[RunSummary],
    pinned: RunSummary | None,
) -> Row:
    """The measure of each run, with its difference from the pinned one where that compares."""
    pairs = [
        (measure(row), None if pinned is None or row is pinned else measure(pinned)) for row in rows
    ]
    none = UNPRICED if shown is usd else NONE
    words = [(none if value is None else shown(value), value, base) for value, base in pairs]
    unit = "points" if shown is percent else ""
    notes = [_delta(value, base, unit) for _, value, base in words]
    if label in _OF_TWO_KINDS:
        pairs_of_kinds = zip(rows, notes, strict=True)
        notes = [_of_kind(row, pinned, note) for row, note in pairs_of_kinds]
    return Row(label, tuple(Cell(*cell) for cell in zip((w[0] for w in words), notes, strict=True)))


def _of_kind(row: RunSummary, pinned: RunSummary | None, delta: str) -> str:
    """What a figure of the best is of; figures of two kinds have no difference."""
    if row.run.best is None:
        return delta
    delta = delta if pinned is not None and row.is_ranked == pinned.is_ranked else ""
    return " · ".join(filter(None, ("" if row.is_ranked else UNRANKED, delta)))


def _delta(value: float | None, base: float | None, unit: str) -> str:
    """Distance from the pinned run, in `unit` or else in percent; empty if unknown."""
    if value is None or base is None or not (base or unit):
        return ""
    return signed((value - base) * 100, unit) if unit else change(value / base)


def _failures(rows: Sequence[RunSummary]) -> list[Row]:
    names = sorted({name for row in rows for name, count in row.failures.items() if count})
    return [
        plain(verdict_words(name), (row.failures.get(name, 0) for row in rows)) for name in names
    ]


def _offered(user: Viewer, keys: Sequence[str]) -> list[tuple[str, str]]:
    """The newest other runs that `user` may see."""
    runs = visible_runs(user).exclude(pk__in=keys)[:_OFFERED]
    return [(str(run.pk), " · ".join(_words(run))) for run in runs]


def _words(run: Run) -> tuple[str, ...]:
    started = f"{run.created_at:%Y-%m-%d %H:%M}"
    return str(run), _where(run), strategy_title(run.strategy), started


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
    found = [run for run in finished if run.tried]
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
    request: HttpRequest, problems: Sequence[tuple[str, str, str, int, str]]
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

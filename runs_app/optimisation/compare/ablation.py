"""Settings of one problem side by side, over runs that differ only in their random seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from runs_app.evolve.ablation import BOOTSTRAP_FROM, RESAMPLES, Group, group, telling, varying
from runs_app.models import Run
from runs_app.optimisation.compare.selectors import (
    MOST_RUNS,
    ablation_runs,
    problems_with_runs,
    runs_of,
)
from tasks_app.parameters import takes
from tasks_app.spreadsheet import FORMS, download

METRICS = {"seed": "over the run's seed", "baseline": "over the best baseline"}


@require_safe
@takes("task", "device", "direction", "problem", "metric", "factor", "format")
def ablation(request: HttpRequest) -> HttpResponse:
    """The table of the address: `task`, `device`, `direction`, `factor`s, `metric`, `format`."""
    problems = problems_with_runs(request.user)
    chosen = _chosen(request, problems)
    if chosen is None:
        context = {"problems": problems, "unknown": bool(request.GET.get("task"))}
        return render(request, "runs_app/optimisation/compare/ablation.html", context)
    metric = request.GET.get("metric", "")
    metric = metric if metric in METRICS else "seed"
    finished = runs_of(request.user, chosen, metric, timezone.now())
    found = [run for run in finished if run.measured]  # the others tried nothing
    offered = varying(found)
    wanted = [name for name in request.GET.getlist("factor") if name in offered]
    factors = wanted or list(telling(found))
    groups = group(found, factors)
    if request.GET.get("format") in FORMS:
        return download(request.GET["format"], [record(each) for each in groups], "groups")
    unfinished = ablation_runs(request.user, *chosen).exclude(status=Run.Status.FINISHED).count()
    context = {
        "problems": problems,
        "chosen": chosen,
        "metric": metric,
        "metrics": METRICS.items(),
        "others": sorted((name for name in offered if name not in factors), key=str.casefold),
        "factors": factors,
        "by_default": not wanted,
        "groups": groups,
        "repeated": any(len(each.runs) > 1 for each in groups),
        "total": len(found),
        "unmeasured": len(finished) - len(found),
        "looked_at": len(finished),
        "most": MOST_RUNS,
        "unfinished": unfinished,
        "bootstrap_from": BOOTSTRAP_FROM,
        "resamples": RESAMPLES,
        "export": request.GET.urlencode(),
    }
    return render(request, "runs_app/optimisation/compare/ablation.html", context)


def _chosen(
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


def record(each: Group) -> dict[str, Any]:
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

"""Pages about verifiers: how right their votes were, and how their prompts were tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from csp.decorators import csp_update
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from runs_app.core.plotly_policy import PLOTLY_STYLES
from runs_app.models import Tuning, VerifierPrompt
from runs_app.optimiser.evolve.judging import VERIFIERS
from runs_app.optimiser.selectors.runs import visible_runs
from runs_app.optimiser.verifiers.calibration import tuning_is_alive, verification
from runs_app.optimiser.verifiers.figures import calibration_figure, tuning_figure
from runs_app.optimiser.verifiers.page import TuningPage, TuningRow, VerifiersPage
from tasks_app.pages.text_diff import Budget, diff

_TUNINGS = 50


@require_safe
@csp_update({"style-src": PLOTLY_STYLES})
def verifiers(request: HttpRequest) -> HttpResponse:
    """All verifiers over the runs that the viewer may see, and the tunings of their prompts."""
    found = verification(visible_runs(request.user).order_by().values("pk"))
    in_use = {prompt.verifier: prompt for prompt in VerifierPrompt.objects.filter(in_use=True)}
    page = VerifiersPage(
        found=found,
        usd_per_hour=settings.DEVICE_USD_PER_HOUR,
        usd_saved=found.usd_saved(settings.DEVICE_USD_PER_HOUR),
        figure=calibration_figure(found.bins) if found.checked else None,
        prompts=[(name, in_use.get(name)) for name in VERIFIERS],
        tunings=[
            _tuning_row(t) for t in Tuning.objects.select_related("language_model")[:_TUNINGS]
        ],
    )
    return render(request, "runs_app/verifiers/verifiers.html", vars(page))


@require_safe
@csp_update({"style-src": PLOTLY_STYLES})  # type: ignore[arg-type] # it knows no arguments
def tuning(request: HttpRequest, tuning_id: UUID) -> HttpResponse:
    """One tuning: accuracy by generation, the prompts with what changed, and the cost."""
    row = get_object_or_404(Tuning.objects.select_related("language_model"), pk=tuning_id)
    generations, budget = row.generations, Budget()
    page = TuningPage(
        **vars(_tuning_row(row)),
        generations=[
            {**each, "shown": [_prompt(each, p, generations, budget) for p in each["prompts"]]}
            for each in generations
        ],
        figure=tuning_figure(generations) if generations else None,
        prompts=row.prompts.all(),
        examples=_counts(row.examples),
        silent=row.ended_at is None and not tuning_is_alive(row, timezone.now()),
    )
    return render(request, "runs_app/verifiers/tuning.html", vars(page))


def _tuning_row(row: Tuning) -> TuningRow:
    """The tuning with its first and its chosen generation; the chosen is the best by training."""
    known = [each for each in row.generations if each.get("train")]
    chosen = max(known, key=_train_accuracy, default=None)
    return TuningRow(tuning=row, first=known[0] if known else None, chosen=chosen)


def _train_accuracy(generation: Mapping[str, Any]) -> float:
    """Of ties `max` takes the first, as the tuning does."""
    train = generation["train"]
    return float(train["right"] / train["of"]) if train["of"] else 0.0


def _prompt(
    generation: Mapping[str, Any],
    prompt: Mapping[str, Any],
    generations: Sequence[Mapping[str, object]],
    budget: Budget,
) -> dict[str, object]:
    parent = _text_of(prompt.get("parent"), generations)
    text = prompt["text"]
    changed = diff(parent, text, budget) if parent is not None and text else None
    return {
        **prompt,
        "best": prompt["slot"] == generation.get("best"),
        "diff": changed.unified if changed else None,
    }


def _text_of(place: Sequence[int] | None, generations: Sequence[Mapping[str, Any]]) -> str | None:
    """Text of the prompt at (generation, slot)."""
    if not place:
        return None
    found = [
        prompt["text"]
        for each in generations
        if each["number"] == place[0]
        for prompt in each["prompts"]
        if prompt["slot"] == place[1]
    ]
    return found[0] if found else None


def _counts(examples: Sequence[Mapping[str, object]]) -> list[tuple[str, int, int, int]]:
    """(name of the set, kernels, of them passing, tasks)."""
    rows = []
    for label, held_out in (("training", False), ("held out", True)):
        part = [each for each in examples if bool(each["held_out"]) is held_out]
        passing = sum(bool(each["passes"]) for each in part)
        rows.append((label, len(part), passing, len({each["task"] for each in part})))
    return rows

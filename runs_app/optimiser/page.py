"""What the pages of optimization runs show, ready to print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.urls import reverse

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.profile.diagnosis import ClassScore, class_scores
from runs_app.core.work.result_state import (
    baseline_noun,
    baseline_words,
    compared_with,
    is_sure,
)
from runs_app.models import Candidate, Device, Evaluation, Run
from runs_app.optimiser.evolve.judging import VERIFIERS, truth
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.evolve.strategies.contract import with_defaults
from runs_app.optimiser.selectors.compared import Baseline, SearchSpeed, compared
from runs_app.optimiser.selectors.confirmation import Confirmation
from runs_app.optimiser.selectors.over_seed import OverSeed, over_seeds
from runs_app.optimiser.selectors.runs import budgets, spent_by
from runs_app.optimiser.selectors.settings import parameter_label, parameters_of, text
from runs_app.optimiser.services.history import config_now
from runs_app.optimiser.start.forms import BudgetForm
from runs_app.submitting.summary import Summary

_LINES = {"eager": "eager", "compiled": "compiled", "best": "best baseline"}
_METERS = (
    ("usd", "Money"),
    ("tokens", "Tokens"),
    ("evaluations", "Evaluations"),
    ("wall_time_s", "Running time"),
)
_OF_MODELS = {"usd", "tokens"}


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run in a list: its best's speedup over the seed, and how it compares with baselines."""

    run: Run
    over_seed: OverSeed | None
    evaluation: Evaluation | None

    @property
    def gain(self) -> tuple[float, str] | None:
        """The best's speedup, and over what: the best baseline, or else the seed."""
        if self.evaluation and self.evaluation.rated:
            return self.evaluation.rated, baseline_words(self.evaluation)
        return (self.over_seed.value, "the seed kernel") if self.over_seed else None

    @property
    def is_sure(self) -> bool:
        """Whether its figure may lead: the run is over, and nothing about it is provisional."""
        return self.run.is_over and (self.evaluation is None or is_sure(self.evaluation))

    @property
    def over(self) -> str:
        """What its evaluation is compared with, as a noun."""
        return baseline_noun(compared_with(self.evaluation)) if self.evaluation else ""

    @property
    def strategy(self) -> str:
        """Its strategy's name for people."""
        return strategy_title(self.run.strategy)


@dataclass(frozen=True, kw_only=True)
class Meter:
    """What was spent of a budget; `cap` is None where there is none."""

    name: str
    label: str
    value: float
    cap: float | None

    @property
    def share(self) -> float | None:
        """What was spent over the cap; None without one, or with a cap of 0."""
        return self.value / self.cap if self.cap else None


@dataclass(frozen=True, kw_only=True)
class Growing:
    """A parameter of which an extension may ask for more, and what it is now."""

    name: str
    label: str
    value: int


@dataclass(frozen=True, kw_only=True)
class RunListPage:
    """The runs that fit the filters; `moving` if one of them searches, `address` repeats them.

    `no_runner` if no runner is connected that could measure a candidate.
    """

    page: Page[Run]
    rows: list[RunRow]
    filters: Mapping[str, str]
    filtered: bool
    moving: bool
    no_runner: bool
    address: str
    tasks: Iterable[str]
    devices: Iterable[Device]
    strategies: Sequence[tuple[str, str]]
    statuses: Sequence[tuple[str, object]]


@dataclass(frozen=True, kw_only=True)
class RunHead:
    """The status of a run, what it has spent, and its buttons for those who may steer it."""

    run: Run
    growing: list[Growing]
    strategy: str
    models: list[str]
    meters: list[Meter]
    active_s: float
    waiting_reason: str
    confirmation: Confirmation
    headline: Summary
    entry: Evaluation | None
    may_control: bool
    budget_form: BudgetForm
    most_usd: float | None


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """A candidate in the table: its time in the search, and its evaluation if it was ranked."""

    candidate: Candidate
    search: SearchSpeed | None
    evaluation: Evaluation | None

    @property
    def ranked(self) -> Evaluation | None:
        """The ranked result, which also counts unlisted sizes."""
        is_ranked = self.evaluation and self.evaluation.mode == Mode.RANKED
        return self.evaluation if is_ranked else None


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """The live page of a run, with its newest candidates as a table."""

    run: Run
    head: RunHead
    config: Mapping[str, object]
    config_rows: list[tuple[str, str]]
    table: Page[Candidate]
    rows: list[CandidateRow]
    baseline: Baseline | None
    class_scores: list[ClassScore]


def growing(run: Run) -> list[Growing]:
    """What the run's strategy may get more of."""
    info = STRATEGIES.get(run.strategy)
    if info is None:
        return []
    now = with_defaults(info, config_now(run).parameters)
    return [
        Growing(name=name, label=parameter_label(name).capitalize(), value=now[name])
        for name in info.grows
    ]


def scores_of_classes(run: Run) -> list[ClassScore]:
    """How often the class of a kernel led to a faster one; one query."""
    columns = ("number", "parents", "techniques", "bottleneck", "latency_ns", "spread")
    rows = run.candidates.filter(latency_ns__isnull=False).only(*columns)
    return class_scores(rows)


def run_rows(runs: Iterable[Run]) -> list[RunRow]:
    """Runs as lists show them; two queries."""
    runs = list(runs)
    gains, evaluations = over_seeds(runs), compared(runs)
    return [
        RunRow(
            run=run,
            over_seed=gains.get(run.pk),
            evaluation=evaluations.get(run.pk),
        )
        for run in runs
    ]


def budget(run: Run) -> dict[str, Any]:
    """The caps of now: those of the start, or of the latest extension."""
    return budgets([run])[run.pk]


def meters(run: Run, active_s: float) -> list[Meter]:
    """What the run has spent, against its caps; money and tokens where it has language models."""
    caps, spent = budget(run), spent_by(run, active_s)
    return [
        Meter(name=name, label=label, value=spent[name], cap=caps.get(name))
        for name, label in _METERS
        if run.config.get("models") or name not in _OF_MODELS
    ]


def config_rows(run: Run) -> list[tuple[str, str]]:
    """How the run goes since its extensions, as labels and values."""
    config, parameters = run.config, parameters_of(run, config_now(run).parameters)
    rows = [
        ("Language models", ", ".join(model["name"] for model in config.get("models", []))),
        ("Temperatures", text(config.get("temperatures", [])) if config.get("models") else ""),
        ("Verifiers", _verifier_words(config.get("verifiers", {}))),
        ("Profile in prompts", config.get("profile", "") if config.get("models") else ""),
        ("Seed kernel", run.problem.get("seed_title", "")),
        ("Seed number", str(run.seed)),
    ]
    rows += [(parameter_label(name), text(value)) for name, value in parameters.items()]
    return [(label, value) for label, value in rows if value]


def reference_lines(run: Run, baseline: Baseline | None) -> dict[str, float]:
    """Times of the best known baseline and of the physical limit in nanoseconds."""
    known = run.problem.get("baselines_ns", {})
    lines = {_LINES.get(name, name): ns for name, ns in known.items()}
    if baseline:
        lines = {baseline.name: baseline.ns}
    elif "best" in known:
        lines = {_LINES["best"]: known["best"]}
    best = run.candidates.filter(verdict="CORRECT").order_by("latency_ns").first()
    if best is not None and best.latency_ns and best.floor_fraction:
        lines["physical limit"] = best.latency_ns * best.floor_fraction
    elif run.problem.get("floor_ns"):
        lines["physical limit"] = run.problem["floor_ns"]
    return lines


def script_config(run: Run, baseline: Baseline | None) -> dict[str, object]:
    """What the page's script needs to begin."""
    return {
        "id": str(run.pk),
        "strategy": run.strategy,
        "startedAt": int(run.created_at.timestamp() * 1000),
        "budget": budget(run),
        "lines": reference_lines(run, baseline),
        "baselineNs": baseline.ns if baseline else None,
        "baselineName": baseline.name if baseline else "",
        "truth": {name: {each: truth(name, each) for each in Verdict} for name in VERIFIERS},
        "urls": {
            "changes": reverse("run-changes", args=[run.pk]),
            "replay": reverse("run-replay", args=[run.pk]),
            "head": reverse("run-head", args=[run.pk]),
            "candidate": reverse("run-candidate", args=[run.pk, 0]),
            "call": reverse("run-call", args=[run.pk, 0]),
            "socket": f"/ws/runs/{run.pk}/",
        },
    }


def strategy_title(name: str) -> str:
    """A strategy's name for people."""
    info = STRATEGIES.get(name)
    return info.title if info else name


def _verifier_words(verifiers: Mapping[str, Any]) -> str:
    names = ", ".join(verifiers.get("names", []))
    if not names:
        return ""
    if verifiers.get("soft", True):
        return f"{names}; the best {verifiers.get('survivors')} of each generation are measured"
    return f"{names}; dropped below {verifiers.get('threshold'):g} of the votes"

"""What runs cost and came to, side by side."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Case, CharField, Count, F, QuerySet, Value, When

from gpu_runner.data.solution import whole
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.core.work.result_state import QUARANTINED, REJECTED, is_whole, result_state
from runs_app.features.compare.ablation import AblationRun
from runs_app.features.compare.curve import Point, curve
from runs_app.models import Candidate, Device, Evaluation, LanguageModelCall, Run
from runs_app.optimiser.evolve.commands import Edit
from runs_app.optimiser.evolve.strategies.cudamaster import REPLACED
from runs_app.optimiser.selectors.compared import compared
from runs_app.optimiser.selectors.language_models import CODE_ROLES
from runs_app.optimiser.selectors.over_seed import OverSeed, over_seeds
from runs_app.optimiser.selectors.runs import active_s, extensions, visible_runs
from runs_app.optimiser.selectors.settings import OWN_KERNEL, PARAMETERS, parameters_of, text
from tasks_app.people import Viewer

MOST_RUNS = 500
"""Runs that one ablation looks at, newest first."""

_CALLS = LanguageModelCall.Status
_FIXED = "replaced"
_UNMEASURED: Mapping[str, str] = {
    Candidate.State.DROPPED: "dropped before reaching hardware",
    _FIXED: "replaced by a repaired version",
}


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One column of a comparison.

    measured: candidates of which hardware has spoken; a lost evaluation says nothing. The seed
    isn't a candidate here: nobody wrote it in the run.
    speedup_seed: the seed's time over the best one's, both of the search. evaluation: what the
    run's page leads with. unmeasured: kernels that nothing has judged. failures: candidates that
    hardware refused by verdict, dropped and replaced ones, answers without a kernel, failed calls.
    """

    run: Run
    settings: Mapping[str, str]
    active_s: float
    speedup_seed: float | None
    evaluation: Evaluation | None
    measured: int
    correct: int
    unmeasured: int
    proposals: int
    failures: Mapping[str, int]
    points: tuple[Point, ...] = ()

    @property
    def correct_share(self) -> float | None:
        """Correct candidates over measured ones."""
        return self.correct / self.measured if self.measured else None

    @property
    def is_ranked(self) -> bool:
        """Whether its best was ranked; else its figures are of the search, on listed sizes."""
        return self.evaluation is not None and self.evaluation.mode == Mode.RANKED

    @property
    def speedup_baseline(self) -> float | None:
        """The best's score where there is one, over all baselines."""
        known = self.evaluation
        doubted = known is None or result_state(known) in (QUARANTINED, REJECTED)
        return known.rated if known and is_whole(known) and not doubted else None

    @property
    def improved(self) -> bool:
        """Whether it found a kernel faster than its seed; without a seed, any correct one."""
        best = self.run.best
        if best is None or best.edit == Edit.SEED:
            return False
        return self.run.seed_latency_ns is None or (self.speedup_seed or 0.0) > 1.0


def summaries(runs: QuerySet[Run], now: datetime, *, points: bool = False) -> list[RunSummary]:
    """A summary of each run, in the order of `runs`; with `points`, its curve too."""
    rows = list(runs.defer(None).defer("task_version__document", "best__source", "best__feedback"))
    candidates = _candidate_counts(rows)
    calls = _call_counts(rows)
    gains, evaluations = over_seeds(rows), compared(rows)
    return [
        replace(
            _summary(
                run, settings, candidates.get(run.pk, []), calls.get(run.pk, []), now, points=points
            ),
            speedup_seed=_speedup_seed(run, gains.get(run.pk)),
            evaluation=evaluations.get(run.pk),
        )
        for run, settings in zip(rows, settings_of(rows), strict=True)
    ]


def _candidate_counts(runs: Iterable[Run]) -> dict[object, list[tuple[str, str, int]]]:
    """For each run: fate, verdict, and how many there are; its seed isn't one of them."""
    replaced = When(state=Candidate.State.DROPPED, reason__startswith=REPLACED, then=Value(_FIXED))
    fate = Case(replaced, default=F("state"), output_field=CharField())
    rows = Candidate.objects.filter(run__in=runs).exclude(edit=Edit.SEED).order_by()
    rows = rows.annotate(fate=fate)
    found: dict[object, list[tuple[str, str, int]]] = {}
    counted = rows.values_list("run_id", "fate", "verdict")
    for run_id, fate_of, verdict, count in counted.annotate(Count("pk")):
        found.setdefault(run_id, []).append((fate_of, verdict, count))
    return found


def _call_counts(runs: Iterable[Run]) -> dict[object, list[tuple[str, bool, int]]]:
    """For each run, of calls that write kernels: status, whether the answer was usable, count."""
    rows = LanguageModelCall.objects.filter(run__in=runs, role__in=CODE_ROLES).order_by()
    found: dict[object, list[tuple[str, bool, int]]] = {}
    for usable in (True, False):
        part = rows.filter(problem="") if usable else rows.exclude(problem="")
        counted = part.values_list("run_id", "status").annotate(count=Count("pk"))
        for run_id, status, count in counted:
            found.setdefault(run_id, []).append((status, usable, count))
    return found


def _summary(
    run: Run,
    settings: Mapping[str, str],
    candidates: list[tuple[str, str, int]],
    calls: list[tuple[str, bool, int]],
    now: datetime,
    *,
    points: bool,
) -> RunSummary:
    failures: Counter[str] = Counter()
    measured = correct = unmeasured = 0
    for fate, verdict, count in candidates:
        if fate in _UNMEASURED:
            failures[_UNMEASURED[fate]] += count
        elif verdict in ("", Verdict.SYSTEM_ERROR):
            unmeasured += count
        else:
            measured += count
            correct += count if verdict == Verdict.CORRECT else 0
        if verdict and verdict != Verdict.CORRECT:
            failures[verdict] += count
    for status, usable, count in calls:
        if status in (_CALLS.FAILED, _CALLS.INTERRUPTED):
            failures["call failed"] += count
        elif status == _CALLS.ANSWERED and not usable:
            failures["no kernel in the answer"] += count
    ended = (_CALLS.ANSWERED, _CALLS.FAILED, _CALLS.INTERRUPTED)
    return RunSummary(
        run=run,
        settings=settings,
        active_s=active_s(run, now),
        speedup_seed=None,
        evaluation=None,
        measured=measured,
        correct=correct,
        unmeasured=unmeasured,
        proposals=sum(count for status, _, count in calls if status in ended),
        failures=failures,
        points=tuple(curve(run)) if points else (),
    )


def problems_with_runs(user: Viewer) -> list[tuple[str, str, str, int, str]]:
    """Task, device and direction of finished runs that `user` may see, with their number.

    The last field is the device's display name.
    """
    rows = visible_runs(user).filter(status=Run.Status.FINISHED).order_by()
    counted = rows.values_list("task_version__task__slug", "device_id", "direction")
    found = sorted(counted.annotate(count=Count("pk")), key=lambda row: (-row[3], row[:3]))
    names = Device.objects.in_bulk([row[1] for row in found])
    return [(*row, str(names[row[1]])) for row in found]


def ablation_runs(user: Viewer, task: str, device: str, direction: str) -> QuerySet[Run]:
    """Runs of one problem that `user` may see, whatever their status."""
    return visible_runs(user).filter(
        task_version__task__slug=task, device_id=device, direction=direction
    )


def runs_of(
    user: Viewer, problem: tuple[str, str, str], metric: str, now: datetime
) -> list[AblationRun]:
    """The newest `MOST_RUNS` finished runs of (task, device, direction), as statistics see them.

    metric: "seed" or "baseline", what the speedup is over.
    """
    runs = ablation_runs(user, *problem).filter(status=Run.Status.FINISHED)
    return [ablation_run(summary, metric) for summary in summaries(runs.all()[:MOST_RUNS], now)]


def ablation_run(summary: RunSummary, metric: str) -> AblationRun:
    """A run for the statistics; it has a speedup over the baseline only if its best is ranked."""
    scored = summary.speedup_baseline if summary.is_ranked else None  # of one kind in a mean
    speedup = summary.speedup_seed if metric == "seed" else scored
    return AblationRun(
        run=str(summary.run.pk),
        setting={name: value for name, value in summary.settings.items() if name != SEED},
        speedup=speedup,
        improved=summary.improved,
        usd=summary.run.usd,
        tokens=summary.run.tokens,
        measured=summary.measured,
        correct=summary.correct,
        tried=bool(summary.measured or summary.proposals or summary.run.best),
    )


def _speedup_seed(run: Run, gain: OverSeed | None) -> float | None:
    """Over the seed; 1 if nothing was faster than it."""
    is_unbeaten = run.best is not None and run.best.is_seed
    return gain.value if gain else 1.0 if is_unbeaten else None


SEED = "random seed"
"""The setting in which repeats differ."""

_LISTS = {"temperatures": "temperatures"}
_PLAIN = {
    "max_tokens": "answer limit (tokens)",
    "profile": "profile",
    "concurrent_asks": "concurrent calls",
    "concurrent_evaluations": "concurrent evaluations",
}
_BUDGET = {
    "usd": "budget: USD",
    "tokens": "budget: tokens",
    "evaluations": "budget: evaluations",
    "wall_time_s": "budget: seconds",
}
_VERIFIERS = ("soft", "threshold", "survivors", "reflect")


def settings_of(runs: Sequence[Run]) -> list[dict[str, str]]:
    """Every setting of each run by its name for people, the random seed included; one query.

    Budget and parameters are those of now. One kernel has one name, whatever each run calls it.
    """
    latest, titles = extensions(run.pk for run in runs), _kernel_names(runs)
    return [_settings(run, latest.get(run.pk, {}), titles) for run in runs]


def _settings(run: Run, extension: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, str]:
    config: Mapping[str, Any] = run.config
    settings = {
        "strategy": run.strategy,
        "task version": str(run.task_version.number),
        "models": text(model["name"] for model in config.get("models", ())) or "none",
        "seed kernel": _seed_kernel(run, titles),
        SEED: str(run.seed),
    }
    settings |= {label: text(config[name]) for name, label in _PLAIN.items() if name in config}
    settings |= {label: text(config[name]) for name, label in _LISTS.items() if name in config}
    settings |= _verifiers(config.get("verifiers") or {})
    budget = extension.get("budget") or config.get("budget") or {}
    settings |= {label: text(budget.get(name), "no cap") for name, label in _BUDGET.items()}
    parameters = parameters_of(run, extension.get("parameters") or {})
    labels = {name: PARAMETERS.get(name, name) for name in sorted(parameters)}
    return settings | {label: text(parameters[name]) for name, label in labels.items()}


def _verifiers(config: Mapping[str, Any]) -> dict[str, str]:
    names = config.get("names") or ()
    settings = {"verifiers": text(names) or "off"}
    if not names:
        return settings
    settings |= {f"verifiers: {name}": text(config[name]) for name in _VERIFIERS if name in config}
    settings["verifiers: model"] = config.get("model") or "the writer's"
    prompts = config.get("prompts") or {}
    digests = {name: _digest(instructions) for name, instructions in prompts.items()}
    return settings | {"verifiers: prompts": text(digests) or "shipped"}


def _kernel_names(runs: Iterable[Run]) -> dict[str, str]:
    """A title for each seed kernel by its digest: what an agent called it, where one did."""
    titles: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: run.problem.get("seed_title") == OWN_KERNEL):
        titles.setdefault(_seed_digest(run), run.problem.get("seed_title", ""))
    return titles


def _seed_kernel(run: Run, titles: Mapping[str, str]) -> str:
    digest = _seed_digest(run)
    return f"{titles.get(digest) or 'kernel'} ({digest})" if digest else "none"


def _seed_digest(run: Run) -> str:
    """Of the seed's texts, which a form may send with other line ends; empty without one."""
    source = run.problem.get("seed_source", "").replace("\r\n", "\n").strip()
    files = run.problem.get("seed_files", {})
    return _digest(whole({run.problem.get("seed_entry", ""): source, **files})) if source else ""


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:8]

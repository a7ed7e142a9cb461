"""What the drawer of a candidate shows: its diff, calls, votes, and its times by workload.

The times are of the evaluation that its time on the page is of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q

from gpu_runner.data import codec
from gpu_runner.data.verdict import Mode
from runs_app.models import Candidate, Evaluation, LanguageModelCall, Result, Run
from runs_app.optimiser.disclosure import public_call
from runs_app.optimiser.evolve.feedback import feedback_of
from runs_app.optimiser.evolve.judging import truth
from runs_app.optimiser.selectors.compared import Baseline, SearchSpeed
from runs_app.optimiser.selectors.over_seed import OverSeed
from tasks_app.disclosure import public_result
from tasks_app.drawings import NOISE
from tasks_app.pages.text_diff import Line

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_EDIT_BLOCK = re.compile(r"<{3,}.*?>{3,}[^\n]*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Vote:
    """A verifier's vote, with what hardware said; `right` is None where it did not tell."""

    verifier: str
    passes: bool
    right: bool | None


@dataclass(frozen=True, kw_only=True)
class CandidatePage:
    """A candidate of a run: where it comes from, what is said of it, and what it cost.

    `search` is its time in the search, `evaluation` what compares it with all baselines, ranked if
    possible. `before` and `after` are the numbers of its neighbours.
    """

    run: Run
    candidate: Candidate
    feedback: Mapping[str, object]
    language: str
    over_seed: OverSeed | None
    baseline: Baseline | None
    search: SearchSpeed | None
    evaluation: Evaluation | None
    parents: Sequence[Candidate]
    diff: Sequence[Line] | None
    times: WorkloadTimes
    votes: list[Vote]
    calls: list[LanguageModelCall]
    own_call: LanguageModelCall | None
    thought: str
    cost_usd: float | None
    tokens: int
    profile: list[tuple[str, str]]
    before: int | None
    after: int | None
    may_control: bool


@dataclass(frozen=True, kw_only=True)
class CallPage:
    """A call of a run: its prompt and answer. `before` and `after` number its neighbors."""

    run: Run
    call: LanguageModelCall
    before: int | None
    after: int | None


def votes(candidate: Candidate) -> list[Vote]:
    """The candidate's votes against what hardware said in each verifier's own question."""
    found = []
    for verifier, passes in candidate.votes.items():
        known = truth(verifier, candidate.verdict)
        right = None if known is None else passes == known
        found.append(Vote(verifier=verifier, passes=passes, right=right))
    return found


def calls_about(run: Run, candidate: Candidate) -> list[LanguageModelCall]:
    """The call that wrote the candidate, and those that speak of it, in their order."""
    about = Q(about=candidate.number)
    if candidate.call_id is not None:
        about |= Q(pk=candidate.call_id)
    return list(run.calls.filter(about).select_related("language_model").order_by("number"))


def find_call(run: Run, number: int) -> CallPage | None:
    """The run's call of that number, with its prompt and answer; None if there is none."""
    rows = run.calls.select_related("language_model")
    call = rows.filter(number=number).first()
    if call is None:
        return None
    others = rows.filter(number__in=(number - 1, number + 1)).values_list("number", flat=True)
    found = set(others)
    return CallPage(
        run=run,
        call=public_call(call, run.task_version.hidden_names),
        before=number - 1 if number - 1 in found else None,
        after=number + 1 if number + 1 in found else None,
    )


def thought(call: LanguageModelCall | None) -> str:
    """What the language model wrote around its code."""
    if call is None:
        return ""
    text = _EDIT_BLOCK.sub("", _FENCE.sub("", call.response))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def profile_rows(feedback: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Metrics of the profile as names and values."""
    metrics = (feedback or {}).get("profile", {})
    return [
        (name, f"{value:,.4g}" if isinstance(value, int | float) else str(value))
        for name, value in metrics.items()
    ]


def neighbours(run: Run, number: int) -> tuple[int | None, int | None]:
    """Numbers of the candidates before and after this one."""
    return (
        number - 1 if number > 1 else None,
        number + 1 if number < run.candidates_made else None,
    )


def parents_of(run: Run, candidate: Candidate) -> Sequence[Candidate]:
    """The candidate's parents, the first one first."""
    rows = {row.number: row for row in run.candidates.filter(number__in=candidate.parents)}
    return [rows[number] for number in candidate.parents if number in rows]


def seed_of(run: Run) -> Candidate | None:
    """The kernel that the run began with."""
    return run.candidates.filter(edit="seed").order_by("number").first()


Told = Mapping[Mode | None, Mapping[str, Any]]
"""Encoded feedback by mode; under None what the candidate's row holds, of whatever mode."""

_NAMES = {
    Mode.QUICK: "the quick evaluation",
    Mode.PROFILE: "the evaluation with a profile",
    Mode.RANKED: "the ranked evaluation",
    Mode.AUDIT: "the audit",
}
_PAIRS = (
    *((mode, mode) for mode in (Mode.QUICK, Mode.PROFILE, Mode.RANKED, Mode.AUDIT)),
    (Mode.QUICK, Mode.PROFILE),  # both are timed by one plan
    (Mode.PROFILE, Mode.QUICK),
)


@dataclass(frozen=True)
class Over:
    """Another kernel's time over the candidate's, if it is known: 2 is twice as fast."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


Compared = tuple[Mode | None, Mapping[str, Over]]
"""The mode in which two kernels are compared, and by workload how many times as fast."""


@dataclass(frozen=True, kw_only=True)
class WorkloadTime:
    """A candidate's time in one workload, with what it is compared to; times in nanoseconds."""

    name: str
    parameters: str  # in words, such as N=4096
    time_ns: float
    low_ns: float
    high_ns: float
    over_seed: Over
    over_parent: Over
    over_baseline: Over
    baseline_ns: float | None
    floor_fraction: float | None  # the physical limit over the time

    @property
    def half_width(self) -> float:
        """Half the 95 % interval over the time."""
        return (self.high_ns - self.low_ns) / 2 / self.time_ns


@dataclass(frozen=True, kw_only=True)
class WorkloadTimes:
    """The table: `of` names the evaluation, `notes` say what is of another one."""

    of: str = ""
    notes: tuple[str, ...] = ()
    rows: tuple[WorkloadTime, ...] = ()


def workload_times(
    run: Run,
    candidate: Candidate,
    seed: Candidate | None,
    parent: Candidate | None,
    baseline: Baseline | None,
) -> WorkloadTimes:
    """Times of the evaluation behind the candidate's time, or of its stored feedback.

    The seed's and the parent's are those of the same mode, where both were measured in one. The
    baseline's are the run's.
    """
    told = _told(run, [each for each in (candidate, seed, parent) if each is not None])
    own = told[candidate.pk]
    mode, known = _mode_of(candidate, own), _baselines(run, baseline)
    compared = {
        name: _compared(mode, own, told[each.pk])
        for name, each in (("seed", seed), ("parent", parent))
        if each is not None
    }
    return WorkloadTimes(
        of=_NAMES[mode] if mode else "",
        notes=_other_modes(mode, compared),
        rows=tuple(
            _row(
                entry,
                {name: ratios.get(entry["name"], Over()) for name, (_, ratios) in compared.items()},
                known.get(entry["name"]) or entry.get("baseline_ns"),
            )
            for entry in own[mode].get("workloads", [])
        ),
    )


def _told(run: Run, candidates: Sequence[Candidate]) -> dict[Any, dict[Mode | None, Any]]:
    """By candidate what was said of it in each mode; two queries at most."""
    told: dict[object, dict[Mode | None, object]] = {
        each.pk: {None: each.feedback or {}} for each in candidates
    }
    rows = Result.objects.filter(
        evaluation__submission__candidate__in=list(told),
        evaluation__device=run.device_id,
        evaluation__mode__in=[mode.value for mode in _NAMES],
    ).order_by("evaluation__finished_at")
    hidden = run.task_version.hidden_names
    of_candidate = F("evaluation__submission__candidate")
    for row in rows.annotate(candidate=of_candidate, mode=F("evaluation__mode")):
        feedback = feedback_of(public_result(row.data, hidden))
        told[row.candidate][Mode(row.mode)] = codec.encode(feedback)
    return told


def _mode_of(candidate: Candidate, own: Told) -> Mode | None:
    """The mode that gave the candidate its time, the latest first; None where no result tells."""
    for mode in reversed([mode for mode in own if mode is not None]):
        told = own[mode]
        if told.get("workloads") and _is_same(told.get("latency_ns"), candidate.latency_ns):
            return mode
    return None


def _is_same(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9)


def _compared(mode: Mode | None, own: Told, other: Told) -> Compared:
    known = [(mode, mode)] if mode else []
    for one, two in (*known, *_PAIRS):
        if own.get(one, {}).get("workloads") and other.get(two, {}).get("workloads"):
            return one, _ratios(own[one], other[two])
    untold = len(own) == 1 or len(other) == 1
    return None, _ratios(own[None], other[None]) if untold else {}


def _ratios(own: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Over]:
    times = {entry["name"]: entry for entry in own.get("workloads", [])}
    return {
        entry["name"]: _over(entry, times[entry["name"]])
        for entry in other.get("workloads", [])
        if entry["name"] in times
    }


def _over(other: Mapping[str, Any], own: Mapping[str, Any]) -> Over:
    """Both intervals, and the usual noise from one process to the next."""
    value = other["time_ns"] / own["time_ns"]
    return Over(
        value=value,
        low=min(other["low_ns"] / own["high_ns"], value / (1 + NOISE)),
        high=max(other["high_ns"] / own["low_ns"], value * (1 + NOISE)),
    )


def _baselines(run: Run, baseline: Baseline | None) -> dict[str, float | None]:
    """Times of the run's baseline by workload: an evaluation of the search may lack some."""
    row = Result.objects.filter(pk=baseline.evaluation).first() if baseline else None
    told = feedback_of(public_result(row.data, run.task_version.hidden_names)) if row else None
    return {each.name: each.baseline_ns for each in told.workloads} if told else {}


def _row(
    entry: Mapping[str, Any], over: Mapping[str, Over], baseline_ns: float | None
) -> WorkloadTime:
    time_ns, floor_ns = entry["time_ns"], entry.get("floor_ns")
    return WorkloadTime(
        name=entry["name"],
        parameters=", ".join(f"{k}={v}" for k, v in entry.get("parameters", {}).items()),
        time_ns=time_ns,
        low_ns=entry["low_ns"],
        high_ns=entry["high_ns"],
        over_seed=over.get("seed", Over()),
        over_parent=over.get("parent", Over()),
        over_baseline=_over(_exact(baseline_ns), entry) if baseline_ns else Over(),
        baseline_ns=baseline_ns,
        floor_fraction=floor_ns / time_ns if floor_ns else None,
    )


def _exact(time_ns: float) -> Mapping[str, float]:
    return {"time_ns": time_ns, "low_ns": time_ns, "high_ns": time_ns}


def _other_modes(mode: Mode | None, compared: Mapping[str, Compared]) -> tuple[str, ...]:
    """Which columns compare the kernels in another mode than the table's."""
    others: dict[Mode, list[str]] = {}
    for name, (used, _) in compared.items():
        if used and used is not mode:
            others.setdefault(used, []).append(f"“vs {name}”")
    return tuple(
        f"For {' and '.join(names)}, we compared the times of {_NAMES[used]}."
        for used, names in others.items()
    )

"""What the drawer of a candidate shows: its diff, calls, times and votes, ready to print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from runs_app.evolve.judging import truth
from runs_app.models import Candidate, LanguageModelCall, Run

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_EDIT_BLOCK = re.compile(r"<{3,}.*?>{3,}[^\n]*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class WorkloadTime:
    """A candidate's time in one workload, with what it is compared to; times in nanoseconds."""

    name: str
    parameters: str  # in words, such as N=4096
    time_ns: float
    low_ns: float
    high_ns: float
    over_seed: float | None  # the seed kernel's time over this one: 2 is twice as fast
    over_parent: float | None  # the same of the parent
    over_baseline: float | None  # the same of the fastest baseline
    baseline_ns: float | None
    floor_fraction: float | None  # the physical limit over the time

    @property
    def half_width(self) -> float:
        """Half the 95 % interval over the time."""
        return (self.high_ns - self.low_ns) / 2 / self.time_ns


@dataclass(frozen=True, kw_only=True)
class Vote:
    """A verifier's vote, with what hardware said; `right` is None where it did not tell."""

    verifier: str
    passes: bool
    right: bool | None


def workload_times(
    feedback: Mapping[str, Any] | None,
    seed: Mapping[str, Any] | None,
    parent: Mapping[str, Any] | None,
) -> list[WorkloadTime]:
    """Times by workload, compared with the seed kernel's, the parent's and the baselines'."""
    seeds, parents = _times(seed), _times(parent)
    return [
        WorkloadTime(
            name=entry["name"],
            parameters=", ".join(f"{k}={v}" for k, v in entry.get("parameters", {}).items()),
            time_ns=entry["time_ns"],
            low_ns=entry["low_ns"],
            high_ns=entry["high_ns"],
            over_seed=_over(seeds.get(entry["name"]), entry),
            over_parent=_over(parents.get(entry["name"]), entry),
            over_baseline=_over(entry.get("baseline_ns"), entry),
            baseline_ns=entry.get("baseline_ns"),
            floor_fraction=_share(entry.get("floor_ns"), entry),
        )
        for entry in (feedback or {}).get("workloads", [])
    ]


def votes(candidate: Candidate) -> list[Vote]:
    """The candidate's votes against what hardware said in each verifier's own question."""
    return [
        _vote(name, candidate.verdict, passes=passes) for name, passes in candidate.votes.items()
    ]


def _vote(verifier: str, verdict: str, *, passes: bool) -> Vote:
    known = truth(verifier, verdict)
    return Vote(verifier=verifier, passes=passes, right=None if known is None else passes == known)


def calls_about(run: Run, candidate: Candidate) -> list[LanguageModelCall]:
    """The call that wrote the candidate, and those that speak of it, in their order."""
    about = Q(about=candidate.number)
    if candidate.call_id is not None:
        about |= Q(pk=candidate.call_id)
    return list(run.calls.filter(about).select_related("language_model").order_by("number"))


def thought(call: LanguageModelCall | None) -> str:
    """What the language model wrote around its code."""
    if call is None:
        return ""
    text = _EDIT_BLOCK.sub("", _FENCE.sub("", call.response))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def profile_rows(feedback: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Metrics of the profile as names and values."""
    metrics = (feedback or {}).get("profile", {})
    return [(name, _number(value)) for name, value in metrics.items()]


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


def _times(feedback: Mapping[str, Any] | None) -> dict[str, float]:
    return {entry["name"]: entry["time_ns"] for entry in (feedback or {}).get("workloads", [])}


def _over(other_ns: float | None, entry: Mapping[str, Any]) -> float | None:
    return other_ns / entry["time_ns"] if other_ns else None


def _share(floor_ns: float | None, entry: Mapping[str, Any]) -> float | None:
    return floor_ns / entry["time_ns"] if floor_ns else None


def _number(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else str(value)

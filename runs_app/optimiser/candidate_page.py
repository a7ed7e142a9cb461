"""What the drawer of a candidate shows: its diff, calls and votes, ready to print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from runs_app.models import Candidate, LanguageModelCall, Run
from runs_app.optimiser.evolve.judging import truth
from runs_app.optimiser.workload_times import WorkloadTimes
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

    `before` and `after` are the numbers of its neighbours.
    """

    run: Run
    candidate: Candidate
    feedback: Mapping[str, object]
    language: str
    over_seed: float | None
    parents: Sequence[Candidate]
    diff: Sequence[Line] | None
    times: WorkloadTimes
    votes: list[Vote]
    calls: list[LanguageModelCall]
    own_call: LanguageModelCall | None
    thought: str
    cost_usd: float
    tokens: int
    profile: list[tuple[str, str]]
    before: int | None
    after: int | None
    may_control: bool


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


def _number(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else str(value)

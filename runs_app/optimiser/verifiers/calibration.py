"""Verifiers against hardware: how right their votes were, what they saved, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, DurationField, ExpressionWrapper, F, QuerySet, Sum

from gpu_runner.data.verdict import Verdict
from runs_app.models import (
    Candidate,
    Evaluation,
    LanguageModel,
    LanguageModelCall,
    Run,
    Status,
    Submission,
    Tuning,
)
from runs_app.optimiser.evolve.commands import Role
from runs_app.optimiser.evolve.judging import VERIFIERS, Bin, Confusion, calibration, truth
from runs_app.optimiser.selectors.spending import known_sum, total_usd

MOST_CANDIDATES = 10_000
"""Candidates with votes that are looked at, newest first; costs are those of all votes."""
_TIMED = 2_000
"""Candidate submissions whose evaluations say how long one takes, newest first."""

_VOTING = (Role.VERIFY.value, Role.REFLECT.value)
_SILENCE = timedelta(minutes=10)
_UNKNOWN = ("", Verdict.TOO_SLOW, Verdict.UNSTABLE, Verdict.SYSTEM_ERROR)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One verifier as one language model played it.

    votes: all of them. avoided: candidates with an alarm of this verifier that were dropped before
    hardware; one with several alarms counts for each. usd: what all its calls cost.
    """

    verifier: str
    model: str
    votes: int
    confusion: Confusion
    avoided: int
    usd: float | None
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Verification:
    """All verifiers of some runs.

    dropped: candidates that votes kept from hardware, of `voted` ones. seconds_each: mean time that
    an evaluation of these runs held its runner, None if there was none. usd, tokens: of the votes.
    """

    rows: tuple[Row, ...]
    bins: tuple[Bin, ...]
    voted: int
    checked: int
    dropped: int
    seconds_each: float | None
    usd: float | None
    tokens: int

    @property
    def seconds_saved(self) -> float | None:
        """Device time that the dropped candidates would have taken, at the mean of the others."""
        return None if self.seconds_each is None else self.dropped * self.seconds_each

    def usd_saved(self, usd_per_hour: float) -> float | None:
        """Price of that time, None where nothing tells it."""
        if self.seconds_saved is None or usd_per_hour <= 0:
            return None
        return self.seconds_saved / 3600 * usd_per_hour


def verification(runs: Iterable[Run] | QuerySet[Run, Any]) -> Verification:
    """How verifiers did in these runs, which the caller has chosen among those to be seen."""
    newest = Candidate.objects.filter(run__in=runs).exclude(votes={}).order_by("-pk")
    candidates = list(
        newest.values_list("run_id", "number", "votes", "verdict", "state")[:MOST_CANDIDATES]
    )
    calls = LanguageModelCall.objects.filter(run__in=runs, role__in=_VOTING)
    voters = _voters(calls)
    dropped = [row for row in candidates if row[4] == Candidate.State.DROPPED]
    scores = [
        (sum(votes.values()) / len(votes), verdict == Verdict.CORRECT)
        for _, _, votes, verdict, _ in candidates
        if verdict not in _UNKNOWN
    ]
    spent = _spent(calls)
    return Verification(
        rows=tuple(_rows(candidates, voters, spent)),
        bins=tuple(calibration(scores)),
        voted=len(candidates),
        checked=len(scores),
        dropped=len(dropped),
        seconds_each=_seconds_each(runs),
        usd=total_usd(usd for usd, _ in spent.values()),
        tokens=sum(tokens for _, tokens in spent.values()),
    )


def _voters(calls: QuerySet[LanguageModelCall]) -> dict[tuple[object, int | None, str], str]:
    """Who had the last word: the name by run, candidate and verifier."""
    rows = calls.filter(status=LanguageModelCall.Status.ANSWERED, problem="").order_by("number")
    names = dict(LanguageModel.objects.values_list("pk", "name"))
    voters = rows.values_list("run_id", "about", "verifier", "language_model_id")
    return {(run_id, about, verifier): names[pk] for run_id, about, verifier, pk in voters}


def _spent(calls: QuerySet[LanguageModelCall]) -> dict[tuple[str, str], tuple[float | None, int]]:
    """Dollars and tokens by verifier and language model."""
    rows = calls.order_by().values_list("verifier", "language_model__name")
    summed = rows.annotate(usd=known_sum("cost_usd"), into=Sum("tokens_in"), out=Sum("tokens_out"))
    return {(verifier, name): (usd, into + out) for verifier, name, usd, into, out in summed}


def _rows(
    candidates: list[tuple[Any, int, Mapping[str, bool], str, str]],
    voters: Mapping[tuple[Any, int | None, str], str],
    spent: Mapping[tuple[str, str], tuple[float | None, int]],
) -> list[Row]:
    pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    votes_of: dict[tuple[str, str], int] = defaultdict(int)
    avoided: dict[tuple[str, str], int] = defaultdict(int)
    for run_id, number, votes, verdict, state in candidates:
        for verifier, passes in votes.items():
            if verifier not in VERIFIERS:
                continue
            key = (verifier, voters.get((run_id, number, verifier), ""))
            votes_of[key] += 1
            avoided[key] += state == Candidate.State.DROPPED and not passes
            known = truth(verifier, verdict)
            if known is not None:
                pairs[key].append((passes, known))
    keys = sorted({*votes_of, *spent}, key=lambda key: (*_place(key[0]), key[1]))
    return [
        Row(
            verifier=key[0],
            model=key[1],
            votes=votes_of[key],
            confusion=Confusion.of(pairs[key]),
            avoided=avoided[key],
            usd=spent.get(key, (0.0, 0))[0],
            tokens=spent.get(key, (0.0, 0))[1],
        )
        for key in keys
    ]


def _place(verifier: str) -> tuple[int, str]:
    return (VERIFIERS.index(verifier) if verifier in VERIFIERS else len(VERIFIERS), verifier)


def _seconds_each(runs: Iterable[Run] | QuerySet[Run, Any]) -> float | None:
    held = ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())
    newest = Submission.objects.filter(run__in=runs).order_by("-created_at").values("pk")
    rows = Evaluation.objects.filter(
        submission__in=newest[:_TIMED], status=Status.FINISHED, started_at__isnull=False
    ).exclude(verdict=Verdict.SYSTEM_ERROR)
    mean = rows.aggregate(mean=Avg(held))["mean"]
    return None if mean is None else float(mean.total_seconds())


def tuning_is_alive(tuning: Tuning, now: datetime) -> bool:
    """Whether a tuning that has not ended has begun, or asked something, a short time ago."""
    newest = tuning.calls.order_by("-created_at").values_list("created_at", flat=True).first()
    return now - (newest or tuning.created_at) < _SILENCE

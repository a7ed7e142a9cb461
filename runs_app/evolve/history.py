"""What a run knows: a fold of facts, with the questions that strategies ask of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.evolve import facts
from runs_app.evolve.config import Budget
from runs_app.evolve.facts import Fact
from runs_app.evolve.feedback import Feedback
from runs_app.evolve.wishes import Edit, Place, Role


class CandidateState(StrEnum):
    """How far a candidate has come."""

    DRAFTED = "drafted"
    DROPPED = "dropped"
    MEASURING = "measuring"
    MEASURED = "measured"


class AskState(StrEnum):
    """How far an ask has come."""

    WAITING = "waiting"
    ANSWERED = "answered"
    FAILED = "failed"


@dataclass(kw_only=True)
class Candidate:
    """A candidate as strategies see it; its source and feedback are in the history's details."""

    number: int
    digest: str
    edit: Edit
    place: Place
    parents: tuple[int, ...] = ()
    ask: int | None = None
    model: str = ""
    title: str = ""
    knobs: Mapping[str, str] = field(default_factory=dict)
    techniques: tuple[str, ...] = ()
    state: CandidateState = CandidateState.DRAFTED
    reason: str = ""
    votes: dict[str, bool] = field(default_factory=dict)
    verdict: str = ""
    latency_ns: float | None = None
    spread: float | None = None
    speedup: float | None = None
    floor_fraction: float | None = None
    bottleneck: str = ""
    measured: set[Mode] = field(default_factory=set)
    measuring: set[Mode] = field(default_factory=set)

    @property
    def is_correct(self) -> bool:
        """Whether hardware has found it right, with a time."""
        return self.verdict == Verdict.CORRECT and self.latency_ns is not None

    @property
    def score(self) -> float | None:
        """Mean of the votes; None before there is one."""
        return sum(self.votes.values()) / len(self.votes) if self.votes else None


@dataclass(kw_only=True)
class Question:
    """An ask as strategies see it; the answer's text is in the history's details."""

    number: int
    role: Role
    place: Place
    model: str
    parents: tuple[int, ...]
    about: int | None
    verifier: str
    edit: Edit
    worst_usd: float
    worst_tokens: int
    state: AskState = AskState.WAITING
    problem: str = ""  # why it failed, or why the answer could not be used
    candidate: int | None = None  # what the answer became
    tokens: int = 0
    cost_usd: float = 0.0


class Details(Protocol):
    """Texts too long to hold in memory for thousands of candidates."""

    def source(self, candidate: int) -> str:
        """Source of a candidate."""

    def feedback(self, candidate: int) -> Feedback | None:
        """What hardware said of a candidate; None before it was measured."""

    def answer(self, ask: int) -> str:
        """Text of an answer."""


class History:
    """Everything that happened so far, in order of numbers."""

    def __init__(self, details: Details) -> None:
        """Nothing has happened yet."""
        self.details = details
        self.candidates: dict[int, Candidate] = {}
        self.questions: dict[int, Question] = {}
        self.finished: facts.Finished | None = None
        self.budget: Budget | None = None  # the latest extension
        self.best: Candidate | None = None

    def apply(self, fact: Fact) -> None:  # noqa: C901 - one short case for each kind of fact
        """Add one fact. The order is the one in which they were stored."""
        match fact:
            case facts.Asked():
                self.questions[fact.number] = _question(fact)
            case facts.Answered() | facts.Failed():
                _settle(self.questions[fact.ask], fact)
            case facts.Drafted():
                self.candidates[fact.number] = _candidate(fact)
                if fact.ask is not None:
                    self.questions[fact.ask].candidate = fact.number
            case facts.Voted():
                self.candidates[fact.candidate].votes[fact.verifier] = fact.passes
            case facts.Dropped():
                dropped = self.candidates[fact.candidate]
                dropped.state, dropped.reason = CandidateState.DROPPED, fact.reason
            case facts.Measuring():
                _measuring(self.candidates[fact.candidate], fact)
            case facts.Measured():
                self._measured(self.candidates[fact.candidate], fact)
            case facts.Finished():
                self.finished = fact
            case facts.Extended():
                self.finished, self.budget = None, fact.budget

    def find(
        self,
        *roles: Role,
        generation: int | None = None,
        slot: int | None = None,
        island: int | None = None,
        about: int | None = None,
        verifier: str | None = None,
    ) -> list[Question]:
        """Questions of any of the roles, in order; None does not narrow."""
        wanted = {"generation": generation, "slot": slot, "island": island}
        narrowed = {name: value for name, value in wanted.items() if value is not None}
        return [
            question
            for question in self.questions.values()
            if (not roles or question.role in roles)
            and all(getattr(question.place, name) == value for name, value in narrowed.items())
            and (about is None or question.about == about)
            and (verifier is None or question.verifier == verifier)
        ]

    def candidates_at(
        self, *, generation: int | None = None, slot: int | None = None, island: int | None = None
    ) -> list[Candidate]:
        """Candidates of a place, in order; None does not narrow."""
        wanted = {"generation": generation, "slot": slot, "island": island}
        narrowed = {name: value for name, value in wanted.items() if value is not None}
        return [
            candidate
            for candidate in self.candidates.values()
            if all(getattr(candidate.place, name) == value for name, value in narrowed.items())
        ]

    def correct(self) -> list[Candidate]:
        """Correct candidates, from the slowest to the fastest."""
        found = [c for c in self.candidates.values() if c.is_correct]
        return sorted(found, key=lambda c: (-(c.latency_ns or 0.0), c.number))

    def waiting(self) -> list[Question]:
        """Questions without an answer."""
        return [q for q in self.questions.values() if q.state is AskState.WAITING]

    def in_flight(self) -> int:
        """How many evaluations are queued or running."""
        return sum(len(candidate.measuring) for candidate in self.candidates.values())

    def evaluations(self) -> int:
        """How many evaluations were begun."""
        return sum(len(c.measured) + len(c.measuring) for c in self.candidates.values())

    def known(self, digest: str) -> Candidate | None:
        """The first candidate with that source."""
        return next((c for c in self.candidates.values() if c.digest == digest), None)

    def lineage(self, number: int) -> Iterator[Candidate]:
        """A candidate and its first parents, up to the seed."""
        at: int | None = number
        while at is not None and (candidate := self.candidates.get(at)) is not None:
            yield candidate
            at = candidate.parents[0] if candidate.parents else None

    def _measured(self, candidate: Candidate, fact: facts.Measured) -> None:
        candidate.measuring.discard(fact.mode)
        candidate.measured.add(fact.mode)
        candidate.bottleneck = fact.bottleneck or candidate.bottleneck
        if candidate.verdict and fact.mode is Mode.PROFILE:
            return  # a profile explains a time, it does not replace it
        candidate.state = CandidateState.MEASURED
        candidate.verdict, candidate.reason = fact.verdict, fact.reason
        candidate.latency_ns, candidate.spread = fact.latency_ns, fact.spread
        candidate.speedup, candidate.floor_fraction = fact.speedup, fact.floor_fraction
        if candidate.is_correct and is_faster(candidate, self.best):
            self.best = candidate


def is_faster(candidate: Candidate, best: Candidate | None) -> bool:
    """Whether a correct candidate is faster than the best so far."""
    if best is None or best.latency_ns is None:
        return True
    return candidate.latency_ns is not None and candidate.latency_ns < best.latency_ns


def draw(seed: int, *label: object) -> random.Random:
    """Randomness for one decision: the same run and label give the same draw."""
    return random.Random("/".join(map(str, (seed, *label))))  # noqa: S311 - search, no secret


def _question(fact: facts.Asked) -> Question:
    return Question(
        number=fact.number,
        role=fact.role,
        place=fact.place,
        model=fact.model,
        parents=fact.parents,
        about=fact.about,
        verifier=fact.verifier,
        edit=fact.edit,
        worst_usd=fact.worst_usd,
        worst_tokens=fact.worst_tokens,
    )


def _settle(question: Question, fact: facts.Answered | facts.Failed) -> None:
    answered = isinstance(fact, facts.Answered)
    question.state = AskState.ANSWERED if answered else AskState.FAILED
    question.problem = fact.problem if isinstance(fact, facts.Answered) else fact.reason
    question.tokens = fact.tokens_in + fact.tokens_out
    question.cost_usd = fact.cost_usd


def _candidate(fact: facts.Drafted) -> Candidate:
    return Candidate(
        number=fact.number,
        digest=fact.digest,
        edit=fact.edit,
        place=fact.place,
        parents=fact.parents,
        ask=fact.ask,
        model=fact.model,
        title=fact.title,
        knobs=fact.knobs,
        techniques=fact.techniques,
    )


def _measuring(candidate: Candidate, fact: facts.Measuring) -> None:
    candidate.measuring.add(fact.mode)
    if candidate.state is CandidateState.DRAFTED:
        candidate.state = CandidateState.MEASURING

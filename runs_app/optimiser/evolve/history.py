"""What a run knows: a fold of events, with the questions that strategies ask of it."""

from __future__ import annotations

import math
import random
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Edit, Place, Role
from runs_app.optimiser.evolve.config import Briefing, Budget
from runs_app.optimiser.evolve.evaluations import LAST_MODES, Evaluations, is_refusal, replaces_time
from runs_app.optimiser.evolve.feedback import Feedback


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

    number: int  # counts a run's candidates from 1
    digest: str  # of its source without comments and layout; see `parser.digest_of`
    edit: Edit
    place: Place
    parents: tuple[int, ...] = ()  # numbers of the candidates that it was made from
    ask: int | None = None  # number of the question that it answers; None: no model wrote it
    model: str = ""
    title: str = ""
    knobs: Mapping[str, str] = field(default_factory=dict)  # values by name
    techniques: tuple[str, ...] = ()  # what its code does; see `parser`
    state: CandidateState = CandidateState.DRAFTED
    reason: str = ""  # why it was dropped, or what its verdict says
    votes: dict[str, bool] = field(default_factory=dict)  # by verifier: may it be measured?
    verdict: str = ""  # of its newest evaluation that counts
    latency_ns: float | None = None
    spread: float | None = None  # half the 95 % interval over the time
    speedup: float | None = None  # over the best baseline
    floor_fraction: float | None = None  # the physical limit over the time
    bottleneck: str = ""  # what its profile says limits it
    measured: set[Mode] = field(default_factory=set)  # in these it was measured
    measuring: set[Mode] = field(default_factory=set)  # in these it is under way

    @property
    def is_correct(self) -> bool:
        """Whether hardware has found it right, with a time."""
        return self.verdict == Verdict.CORRECT and self.latency_ns is not None

    @property
    def is_told(self) -> bool:
        """Whether hardware has spoken of it; an evaluation that was lost says nothing."""
        return self.verdict not in ("", Verdict.SYSTEM_ERROR)

    @property
    def score(self) -> float | None:
        """Mean of the votes; None before there is one."""
        return sum(self.votes.values()) / len(self.votes) if self.votes else None


@dataclass(kw_only=True)
class Question:
    """An ask as strategies see it; the answer's text is in the history's details."""

    number: int  # counts a run's asks from 1
    role: Role
    place: Place
    model: str  # name of the language model
    parents: tuple[int, ...]  # numbers of candidates that are to be changed
    about: int | None  # number of the candidate to be judged, mended or advised about
    verifier: str  # which one is asked, if any
    edit: Edit
    worst_usd: float  # what it may cost at most
    worst_tokens: int  # of prompt and answer at most
    state: AskState = AskState.WAITING
    problem: str = ""  # why it failed, or why the answer could not be used
    candidate: int | None = None  # what the answer became
    tokens: int = 0  # of prompt and answer, once it has ended
    cost_usd: float | None = 0.0  # None: nobody knows the price


class Details(Protocol):
    """Texts too long to hold in memory for thousands of candidates."""

    def source(self, candidate: int) -> str:
        """Source of a candidate."""

    def feedback(self, candidate: int) -> Feedback | None:
        """What hardware said of a candidate; None before it was measured."""

    def answer(self, ask: int) -> str:
        """Text of an answer."""


class History:
    """Everything that happened so far, in order of numbers.

    Sums and indices grow with each event, so that a question costs the same in a long run.
    """

    def __init__(self, details: Details) -> None:
        self.details = details
        self.candidates: dict[int, Candidate] = {}
        self.questions: dict[int, Question] = {}
        self.finished: events.Finished | None = None
        self.budget: Budget | None = None  # the latest extension
        self.parameters: Mapping[str, object] = {}  # the strategy's, that extensions have changed
        self.briefing: Briefing | None = None  # what was learned since the start
        self.best: Candidate | None = None
        self.settled: list[Candidate] = []  # in the order in which hardware spoke of them
        self.paid_tokens = 0  # for asks that are over
        self._costs_usd: list[float] = []  # of the same, if known
        self.is_priced = True  # all of these costs are known
        self.told = Evaluations()
        self.in_flight = 0  # evaluations that are queued or running
        self._correct: list[tuple[float, int]] = []  # (-latency in ns, number), sorted
        self._waiting: dict[int, Question] = {}
        self._by_digest: dict[str, Candidate] = {}
        self._by_role: defaultdict[Role, list[Question]] = defaultdict(list)
        self._by_generation: defaultdict[int, list[Question]] = defaultdict(list)
        self._by_place: defaultdict[Place, list[Question]] = defaultdict(list)
        self._by_subject: defaultdict[int, list[Question]] = defaultdict(list)

    def restore(
        self,
        candidates: Iterable[Candidate],
        questions: Iterable[Question],
        *,
        evaluations: Evaluations,
        best: int | None,
        finished: events.Finished | None,
        extension: events.Extended | None,
    ) -> None:
        """Take over what folding a run's events has made before; both in order of numbers."""
        for question in questions:
            self._asked(question)
            if question.state is not AskState.WAITING:
                del self._waiting[question.number]
                self._paid(question)
        for candidate in candidates:
            self._drafted(candidate)
            self.in_flight += len(candidate.measuring)
            if candidate.latency_ns is not None:
                self._correct.append((-candidate.latency_ns, candidate.number))
        self._correct.sort()
        self.told = evaluations
        self.settled = [self.candidates[number] for number in evaluations.settled]
        self.best = self.candidates[best] if best is not None else None
        if extension is not None:
            self.budget, self.parameters = extension.budget, extension.parameters
        self.finished = finished

    def apply(self, event: events.Event) -> None:  # noqa: C901 - a short case for each kind
        """Add one event. The order is the one in which they were stored."""
        self.told.apply(event)
        match event:
            case events.Asked():
                self._asked(_question(event))
            case events.Answered() | events.Failed():
                self._settled(event)
            case events.Drafted():
                self._drafted(Candidate(**vars(event)))
            case events.Voted():
                self.candidates[event.candidate].votes[event.verifier] = event.passes
            case events.Dropped():
                dropped = self.candidates[event.candidate]
                dropped.state, dropped.reason = CandidateState.DROPPED, event.reason
            case events.Measuring():
                self._measuring(self.candidates[event.candidate], event.mode)
            case events.Measured():
                self._measured(self.candidates[event.candidate], event)
            case events.Chosen():
                self.best = self.candidates[event.candidate]
            case events.Finished():
                self.finished = event
            case events.Extended():
                self._extended(event)
            case events.Briefed():
                self.briefing = event.briefing

    def find(
        self,
        *roles: Role,
        place: Place | None = None,
        generation: int | None = None,
        about: int | None = None,
        verifier: str | None = None,
    ) -> list[Question]:
        """Questions of any of the roles, in order; None does not narrow."""
        narrowed: Iterable[Question] = self.questions.values()
        if place is not None:
            narrowed = self._by_place.get(place, ())
        elif about is not None:
            narrowed = self._by_subject.get(about, ())
        elif generation is not None:
            narrowed = self._by_generation.get(generation, ())
        elif len(roles) == 1:
            narrowed = self._by_role.get(roles[0], ())
        return [
            question
            for question in narrowed
            if (not roles or question.role in roles)
            and (generation is None or question.place.generation == generation)
            and (about is None or question.about == about)
            and (verifier is None or question.verifier == verifier)
        ]

    def correct(self) -> list[Candidate]:
        """Correct candidates, from the slowest to the fastest."""
        return [self.candidates[number] for _, number in self._correct]

    @property
    def paid_usd(self) -> float:
        """Known costs of asks that are over; the same in whatever order they ended."""
        return math.fsum(self._costs_usd)

    def waiting(self) -> list[Question]:
        """Questions without an answer."""
        return list(self._waiting.values())

    def known(self, digest: str) -> Candidate | None:
        """The first candidate with that source."""
        return self._by_digest.get(digest)

    def _asked(self, question: Question) -> None:
        self.questions[question.number] = self._waiting[question.number] = question
        self._by_role[question.role].append(question)
        self._by_generation[question.place.generation].append(question)
        self._by_place[question.place].append(question)
        if question.about is not None:
            self._by_subject[question.about].append(question)

    def _settled(self, event: events.Answered | events.Failed) -> None:
        question = self._waiting.pop(event.ask)
        answered = isinstance(event, events.Answered)
        question.state = AskState.ANSWERED if answered else AskState.FAILED
        question.problem = event.problem if isinstance(event, events.Answered) else event.reason
        question.tokens = event.tokens_in + event.tokens_out
        question.cost_usd = event.cost_usd
        self._paid(question)

    def _paid(self, question: Question) -> None:
        self.paid_tokens += question.tokens
        if question.cost_usd is None:
            self.is_priced = False
        else:
            self._costs_usd.append(question.cost_usd)

    def _drafted(self, candidate: Candidate) -> None:
        self.candidates[candidate.number] = candidate
        self._by_digest.setdefault(candidate.digest, candidate)
        if candidate.ask is not None:
            self.questions[candidate.ask].candidate = candidate.number

    def last_verdict(self, candidate: Candidate, mode: Mode) -> str:
        """What ranking or audit said of a candidate; empty before that."""
        return self.told.last.get((candidate.number, mode), "")

    @property
    def searched(self) -> events.Searched | None:
        """How the search ended, while it is over."""
        return self.told.searched

    def is_searching(self) -> bool:
        """Whether an evaluation of the search is under way."""
        return any(c.measuring - LAST_MODES for c in self.candidates.values())

    def _extended(self, event: events.Extended) -> None:
        self.budget = event.budget
        self.parameters = {**self.parameters, **event.parameters}
        if event.parameters or (self.finished is not None and self.finished.by_budget):
            self.finished = None

    def _measuring(self, candidate: Candidate, mode: Mode) -> None:
        self.in_flight += 1
        candidate.measuring.add(mode)
        if candidate.state is CandidateState.DRAFTED:
            candidate.state = CandidateState.MEASURING

    def _measured(self, candidate: Candidate, event: events.Measured) -> None:
        self.in_flight -= 1
        candidate.measuring.discard(event.mode)
        if self.told.may_come_again(event):
            if candidate.state is CandidateState.MEASURING and not candidate.measuring:
                candidate.state = CandidateState.DRAFTED
            return
        candidate.measured.add(event.mode)
        candidate.bottleneck = event.bottleneck or candidate.bottleneck
        if candidate.is_told and not replaces_time(event, candidate.latency_ns):
            return
        if not candidate.is_told and event.verdict != Verdict.SYSTEM_ERROR:
            self.settled.append(candidate)
        self._take_over(candidate, event)
        if event.mode in LAST_MODES:
            if self.best is candidate and is_refusal(event.verdict):
                correct = self.correct()
                self.best = correct[-1] if correct else None
        elif candidate.is_correct and is_faster(candidate, self.best):
            self.best = candidate

    def _take_over(self, candidate: Candidate, event: events.Measured) -> None:
        """Verdict and times of the newest evaluation that counts."""
        if candidate.latency_ns is not None:  # another mode's time takes the place of the first
            self._correct.remove((-candidate.latency_ns, candidate.number))
        candidate.state = CandidateState.MEASURED
        candidate.verdict, candidate.reason = event.verdict, event.reason
        candidate.latency_ns, candidate.spread = event.latency_ns, event.spread
        candidate.speedup, candidate.floor_fraction = event.speedup, event.floor_fraction
        if event.latency_ns is not None:
            insort(self._correct, (-event.latency_ns, candidate.number))


def noise_ns(one: Candidate, other: Candidate) -> float:
    """By how much two times may differ by chance: both spreads, in quadrature."""
    return math.hypot(*((c.latency_ns or 0.0) * (c.spread or 0.0) for c in (one, other)))


def is_faster(candidate: Candidate, best: Candidate | None) -> bool:
    """Whether a correct candidate is faster than the best so far."""
    return best is None or (candidate.latency_ns or math.inf) < (best.latency_ns or math.inf)


def draw(seed: int, *label: object) -> random.Random:
    """Randomness for one decision: the same run and label give the same draw."""
    return random.Random("/".join(map(str, (seed, *label))))  # noqa: S311 - search, no secret


def _question(event: events.Asked) -> Question:
    same = ("number", "role", "place", "model", "parents", "about", "verifier", "edit")
    return Question(**{name: getattr(event, name) for name in (*same, "worst_usd", "worst_tokens")})

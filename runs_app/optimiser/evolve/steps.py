"""Lets a strategy be written as plain steps: the first one that is not done yet stops it.

A strategy is a function over `Steps` that reads like its paper. At every ask it runs again from its
beginning; each step returns at once what the history knows of it, or raises `Pending` with what has
to be commanded. Steps that may be done at the same time go through `gather`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.optimiser.evolve.commands import (
    Ask,
    Command,
    Draft,
    Drop,
    Edit,
    Finish,
    Measure,
    Place,
    Prompt,
    Role,
)
from runs_app.optimiser.evolve.config import ModelSpec, Problem, ProfileMode, RunConfig
from runs_app.optimiser.evolve.history import (
    AskState,
    Candidate,
    CandidateState,
    History,
    Question,
    draw,
)
from runs_app.optimiser.evolve.sections import (
    by_workload,
    clip,
    sections,
    text_of,
    times_text,
    tried_text,
)

T = TypeVar("T")

MAX_FAILURES = 3
"""Calls that may fail at one place of a plan before the plan goes on without their answer."""

MAX_ERROR_TOKENS = 1500
SEED = Place()
"""Where the kernel belongs that a run begins with."""


class Pending(Exception):
    """A step is not done; `commands` are what it takes, none if that is under way."""

    def __init__(self, commands: Iterable[Command] = ()) -> None:
        super().__init__("a step is not done yet")
        self.commands = list(commands)


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """An ask in a strategy's plan; its prompt is only made where it has to be sent.

    max_tokens: of the answer; None is the run's own limit. model: empty draws one. calm: the run's
    lowest temperature, for judging and summing up; otherwise one of them is drawn.
    """

    role: Role
    place: Place
    prompt: Callable[[], Prompt]
    parents: tuple[int, ...] = ()
    about: int | None = None
    verifier: str = ""
    model: str = ""
    calm: bool = False
    max_tokens: int | None = None


def commands_of(plan: Callable[[], str]) -> list[Command]:
    """What a plan commands now: what is cheap and quick first, or its end and why."""
    try:
        reason = plan()
    except Pending as pending:
        return sorted(pending.commands, key=lambda command: isinstance(command, Ask))
    return [Finish(reason=reason)]


def gather(steps: Iterable[Callable[[], T]]) -> list[T]:
    """The results of steps that do not wait for each other; raises `Pending` for all of them."""
    results: list[T] = []
    waits: list[Pending] = []
    for step in steps:
        try:
            results.append(step())
        except Pending as pending:
            waits.append(pending)
    if waits:
        raise Pending(command for pending in waits for command in pending.commands)
    return results


class Steps:
    """The steps of one run over its history."""

    def __init__(self, problem: Problem, config: RunConfig, history: History) -> None:
        self.problem, self.config, self.history = problem, config, history

    def seed(self) -> Candidate | None:
        """The kernel that the run begins with, drafted; None if it has none."""
        if not self.problem.seed_source.strip():
            return None
        for candidate in self.history.candidates.values():  # it is the first of all
            if candidate.edit is Edit.SEED:
                return candidate
        title = self.problem.seed_title
        raise Pending(
            [Draft(source=self.problem.seed_source, edit=Edit.SEED, place=SEED, title=title)]
        )

    def answered(self, inquiry: Inquiry) -> Question:
        """The last question of an inquiry, settled.

        A call that failed is asked again, in all `MAX_FAILURES` times; so is one whose answer says
        nothing, unless it should have been a kernel: that is an attempt, and it has failed.
        """
        about, verifier = inquiry.about, inquiry.verifier or None
        asked = self.history.find(inquiry.role, place=inquiry.place, about=about, verifier=verifier)
        if asked and asked[-1].state is AskState.WAITING:
            raise Pending
        if asked and (_is_done(asked[-1]) or len(asked) >= MAX_FAILURES):
            return asked[-1]
        raise Pending([self._ask(inquiry, attempt=len(asked) + 1)])

    def text(self, inquiry: Inquiry) -> str:
        """The answer of an inquiry in prose; "" if there will be none."""
        question = self.answered(inquiry)
        return "" if question.problem else self.history.details.answer(question.number).strip()

    def kernel(self, inquiry: Inquiry) -> Candidate | None:
        """The candidate of an inquiry; None if there will be none."""
        number = self.answered(inquiry).candidate
        return None if number is None else self.history.candidates[number]

    def measured(self, candidate: Candidate, mode: Mode = Mode.QUICK) -> Candidate:
        """The candidate after an evaluation in that mode; at once if it was dropped."""
        if candidate.state is CandidateState.DROPPED or mode in candidate.measured:
            return candidate
        if mode in candidate.measuring:
            raise Pending
        raise Pending([Measure(candidate=candidate.number, mode=mode)])

    def profiled(self, candidate: Candidate) -> Candidate:
        """The candidate after a profile, if the run wants profiles and it is correct."""
        if self.config.profile is ProfileMode.NONE or not candidate.is_correct:
            return candidate
        return self.measured(candidate, Mode.PROFILE)

    def dropped(self, candidate: Candidate, reason: str) -> Candidate:
        """The candidate, not to be measured."""
        if candidate.state is CandidateState.DROPPED:
            return candidate
        raise Pending([Drop(candidate=candidate.number, reason=reason)])

    def is_repeat(self, candidate: Candidate) -> bool:
        """Whether a candidate was dropped because an earlier one has the same source."""
        dropped = candidate.state is CandidateState.DROPPED
        return dropped and self.history.known(candidate.digest) is not candidate

    def source(self, candidate: Candidate) -> str:
        """Source of a candidate."""
        return self.history.details.source(candidate.number)

    def report(self, candidate: Candidate) -> str:
        """What is known of a candidate after its evaluation, for a prompt."""
        if candidate.state is CandidateState.DROPPED:
            return f"It was not measured: {candidate.reason}."
        feedback = self.history.details.feedback(candidate.number)
        if feedback is None:
            return f"{candidate.verdict}: {candidate.reason}"
        profile, bottleneck = self.config.profile, candidate.bottleneck
        return text_of(sections(feedback, profile, bottleneck, self._limits()))

    def error(self, candidate: Candidate) -> str:
        """The same of a candidate that failed, in `MAX_ERROR_TOKENS` at most."""
        return clip(self.report(candidate), MAX_ERROR_TOKENS)

    def tried(self, *, besides: Iterable[int] = (), before: int | None = None) -> str:
        """What was tried and lost, for a prompt; see `tried_text`."""
        return tried_text(self.history, besides=besides, before=before)

    def times(self, candidate: Candidate) -> str:
        """Times of a correct candidate, workload by workload, with their noise."""
        feedback = self.history.details.feedback(candidate.number)
        if feedback is not None and feedback.workloads:
            return times_text(feedback, self._limits())
        return f"Overall: {(candidate.latency_ns or 0.0) / 1e3:.2f} us"

    def line(self, candidate: Candidate) -> str:
        """A candidate's outcome in a line, its time by workload too."""
        if not candidate.is_correct:
            return one_line(candidate)
        feedback = self.history.details.feedback(candidate.number)
        time_ns = feedback.latency_ns if feedback is not None else None
        return one_line(candidate, time_ns) + by_workload(feedback)

    def _limits(self) -> dict[str, float]:
        known = self.problem.known
        return {each.workload: each.limit_ns for each in known if each.limit_ns is not None}

    def _ask(self, inquiry: Inquiry, attempt: int) -> Ask:
        place = inquiry.place
        label = (inquiry.role, place.generation, place.slot, place.island)
        dice = draw(self.config.seed, *label, inquiry.about, inquiry.verifier, attempt)
        model: ModelSpec = dice.choice(self.config.writers)
        heats = self.config.temperatures
        heat = dice.choice(heats)
        return Ask(
            role=inquiry.role,
            prompt=inquiry.prompt(),
            model=inquiry.model or model.name,
            temperature=min(heats) if inquiry.calm else heat,
            place=place,
            parents=inquiry.parents,
            about=inquiry.about,
            verifier=inquiry.verifier,
            max_tokens=inquiry.max_tokens,
        )


def _is_done(question: Question) -> bool:
    """Whether there is no sense in asking the same once more."""
    if question.candidate is not None or not question.problem:
        return True
    return question.role.writes_code and question.state is AskState.ANSWERED


def is_judged(candidate: Candidate) -> bool:
    """Whether there is something to say of a candidate: its evaluation was not lost by us."""
    return candidate.verdict != Verdict.SYSTEM_ERROR


def one_line(candidate: Candidate, time_ns: float | None = None) -> str:
    """A candidate's outcome in a line, for a history in a prompt; time_ns: another of its times."""
    name = named(candidate)
    if candidate.state is CandidateState.DROPPED:
        return f"{name}: not measured, {candidate.reason}"
    if candidate.latency_ns is None:
        return f"{name}: {candidate.verdict}, {candidate.reason}"
    return f"{name}: correct, {(time_ns or candidate.latency_ns) / 1e3:.2f} us"


def named(candidate: Candidate) -> str:
    """Number and title."""
    return f"#{candidate.number} {candidate.title}".rstrip()


def fastest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The fastest correct candidate; the older of two equals."""
    correct = [candidate for candidate in candidates if candidate.is_correct]
    return min(correct, key=lambda c: (c.latency_ns or 0.0, c.number), default=None)

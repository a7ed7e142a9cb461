"""Replays a stored run without a network: the same events must come of the same decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpu_runner.data.verdict import Mode
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.budget import wall_time_refusal
from runs_app.optimiser.evolve.commands import Ask, Message
from runs_app.optimiser.evolve.config import Problem, RunConfig
from runs_app.optimiser.evolve.events import Answer, Event, Transition
from runs_app.optimiser.evolve.feedback import Feedback
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.optimizer import Optimizer

MAX_DIFFERENCES = 20
"""A replay ends after as many: what follows from one mistake is of no more use."""


@dataclass(frozen=True)
class Reply:
    """What came back of a call: its text, and why it ended, as the endpoint said."""

    text: str
    finish_reason: str = "stop"


class Record(Protocol):
    """The texts of a stored run; `feedback` is that of one mode, None where there is none."""

    def source(self, candidate: int) -> str:
        """Source of a candidate."""

    def reply(self, ask: int) -> Reply:
        """What came of an ask; the text of a call that failed is what it left, mostly none."""

    def feedback(self, candidate: int, mode: Mode) -> Feedback | None:
        """What hardware said of a candidate in that mode."""

    def prompt(self, ask: int) -> tuple[Message, ...]:
        """The messages that were sent."""


@dataclass(frozen=True)
class Difference:
    """A place where the replay does not do what was stored; `at` counts events from 0."""

    at: int
    stored: str
    replayed: str


@dataclass(frozen=True)
class ReplayReport:
    """How often the run decided, how many events were made again, and where they differ."""

    steps: int
    events: int
    differences: tuple[Difference, ...]


def replay(
    problem: Problem, config: RunConfig, stored: Sequence[Event], record: Record
) -> ReplayReport:
    """Make every decision of a stored run again, and compare it with what was stored.

    What came from outside is taken from the log: what hardware said, that a call was answered or
    failed, extensions, what was learned of the device, and the end of its running time. All else
    must come of it again, event by event and prompt by prompt. After a difference the replay goes
    on from the stored events.
    """
    return _Replay(problem, config, stored, record).run()


class _Replay:
    def __init__(
        self, problem: Problem, config: RunConfig, stored: Sequence[Event], record: Record
    ) -> None:
        self.problem, self.config, self.stored, self.record = problem, config, stored, record
        self.optimizer = self._restored(0)
        self.at = self.steps = 0
        self.differences: list[Difference] = []

    def run(self) -> ReplayReport:
        while self.at < len(self.stored) and len(self.differences) < MAX_DIFFERENCES:
            at = self.at
            try:
                self._step(self.stored[at])
            except (LookupError, ValueError) as error:  # no run leaves such events behind
                reason = f"cannot continue, because the events are inconsistent: {error!r}"
                self.differences.append(Difference(at, repr(self.stored[at]), reason))
                break
        return ReplayReport(self.steps, self.at, tuple(self.differences))

    def _step(self, event: Event) -> None:
        if self._is_given(event):
            self.optimizer.history.apply(event)
            self.at += 1
        elif isinstance(event, events.Answered | events.Failed):
            self._compare(self._told(event))
        else:
            self.steps += 1
            self._compare(self._asked())

    def _is_given(self, event: Event) -> bool:
        """Whether an event came from outside. One about nothing that is under way is compared."""
        history = self.optimizer.history
        match event:
            case events.Extended() | events.Tried() | events.Briefed():
                return True
            case events.Measured():
                candidate = history.candidates.get(event.candidate)
                return candidate is not None and event.mode in candidate.measuring
            case events.Searched() | events.Finished():
                if history.searched is not None:
                    return False
                budget = history.budget or self.config.budget
                return event.by_budget and event.reason == wall_time_refusal(budget, math.inf)
            case _:
                return False

    def _told(self, event: events.Answered | events.Failed) -> list[Transition]:
        """What the answer becomes, read again."""
        if event.ask not in self.optimizer.history.questions:
            return []
        reply = self.record.reply(event.ask)
        answer = Answer(event=event, text=reply.text, finish_reason=reply.finish_reason)
        return self.optimizer.tell(answer)

    def _asked(self) -> list[Transition]:
        """Everything that one step decides."""
        made: list[Transition] = []
        while transitions := self.optimizer.ask():
            made += transitions
        return made

    def _compare(self, made: list[Transition]) -> None:
        """Compare what was made with what was stored from here on."""
        if not made:
            self._differ(self.at, "nothing")
            return
        for at, transition in enumerate(made, start=self.at):
            stored = self.stored[at] if at < len(self.stored) else None
            if transition.event != stored:
                self._differ(at, repr(transition.event))
                return
            if reason := self._other_text(transition):
                self.differences.append(Difference(at, reason, "another text"))
        self.at += len(made)

    def _other_text(self, transition: Transition) -> str:
        """What of a transition's texts is not what was stored; empty if all is."""
        match transition.event:
            case events.Asked(number=ask) if isinstance(transition.command, Ask):
                same = self.record.prompt(ask) == transition.command.prompt.messages
                return "" if same else f"prompt of ask {ask}"
            case events.Drafted(number=candidate):
                same = self.record.source(candidate) == transition.source
                return "" if same else f"source of candidate {candidate}"
            case _:
                return ""

    def _differ(self, at: int, replayed: str) -> None:
        """Note a difference, and go on after the stored events of this place."""
        stored = repr(self.stored[at]) if at < len(self.stored) else "nothing"
        self.differences.append(Difference(at, stored, replayed))
        self.at = min(at + 1, len(self.stored))
        while self.at < len(self.stored) and not _begins(self.stored[self.at]):
            self.at += 1
        self.optimizer = self._restored(self.at)

    def _restored(self, at: int) -> Optimizer:
        """The optimiser after the stored events before that place."""
        history = History(_Then(self.record))
        details = history.details
        assert isinstance(details, _Then)
        details.history = history
        for event in self.stored[:at]:
            history.apply(event)
        return Optimizer(self.problem, self.config, history)


class _Then:
    """Details as they were then: feedback that a later profile replaced is there again."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.history: History

    def source(self, candidate: int) -> str:
        return self.record.source(candidate)

    def answer(self, ask: int) -> str:
        return self.record.reply(ask).text

    def feedback(self, candidate: int) -> Feedback | None:
        measured = self.history.candidates[candidate].measured
        modes = (Mode.AUDIT, Mode.RANKED, Mode.PROFILE, Mode.QUICK)
        newest = (m for m in modes if m in measured)
        found = (self.record.feedback(candidate, mode) for mode in newest)
        return next((feedback for feedback in found if feedback is not None), None)


def _begins(event: Event) -> bool:
    """Whether an event is the first of what an outcome brings."""
    from_outside = events.Measured | events.Extended | events.Briefed
    return isinstance(event, events.Answered | events.Failed | from_outside)

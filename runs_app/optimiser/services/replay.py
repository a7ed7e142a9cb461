"""Replay a stored run without a network, from its events and rows."""

from __future__ import annotations

from gpu_runner.data.verdict import Mode
from runs_app.models import Result, Run
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Message
from runs_app.optimiser.evolve.evaluations import Evaluations, replaces_feedback
from runs_app.optimiser.evolve.feedback import Feedback, feedback_of
from runs_app.optimiser.evolve.replay import ReplayReport, Reply, replay
from runs_app.optimiser.services.history import config_of, event_of, problem_of, stored_events
from tasks_app.disclosure import public_result


def replay_run(run: Run) -> ReplayReport:
    """Make every decision of the run again, and compare it with what was stored."""
    return replay(problem_of(run), config_of(run), stored_events(run), StoredRecord(run))


class StoredRecord:
    """The texts of a stored run as its strategy saw them; a `Record` of `evolve.replay`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._sources = dict(run.candidates.values_list("number", "source"))
        replies = run.calls.values_list("number", "response", "finish_reason")
        self._replies = {number: Reply(text, end or "unknown") for number, text, end in replies}
        self._measured: dict[tuple[int, Mode], events.Measured] = {}
        self._first: dict[int, Mode] = {}  # in which mode hardware spoke first of a candidate
        self._evaluations: dict[tuple[int, Mode], str] = {}
        self._feedback: dict[tuple[int, Mode], Feedback] = {}
        self._read_measurements()

    def source(self, candidate: int) -> str:
        return self._sources[candidate]

    def reply(self, ask: int) -> Reply:
        return self._replies[ask]

    def prompt(self, ask: int) -> tuple[Message, ...]:
        messages = self._run.calls.values_list("messages", flat=True).get(number=ask)
        return tuple(Message(**message) for message in messages)

    def feedback(self, candidate: int, mode: Mode) -> Feedback | None:
        """What hardware said in that mode; None where it did not replace what was known."""
        key = candidate, mode
        event = self._measured.get(key)
        if event is None:
            return None
        is_first = self._first.get(candidate) is mode
        if not is_first and not replaces_feedback(mode, event.verdict):
            return None
        if key not in self._feedback:
            self._feedback[key] = self._read_feedback(event)
        return self._feedback[key]

    def _read_measurements(self) -> None:
        kinds = ("measuring", "measured", "searched", "finished", "extended")
        rows = self._run.events.filter(kind__in=kinds).order_by("seq")
        evaluations = Evaluations()
        for kind, payload in rows.values_list("kind", "payload"):
            told = event_of(kind, payload)
            evaluations.apply(told)
            match told:
                case events.Measuring(candidate=candidate, mode=mode):
                    evaluation = payload.get("row", {}).get("evaluation", "")
                    self._evaluations[candidate, mode] = evaluation
                case events.Measured() as event if not evaluations.may_come_again(event):
                    self._measured[event.candidate, event.mode] = event
                    self._first.setdefault(event.candidate, event.mode)

    def _read_feedback(self, event: events.Measured) -> Feedback:
        evaluation = self._evaluations.get((event.candidate, event.mode))
        if not evaluation:  # no compiler could be given the source
            return Feedback(verdict=event.verdict, reason=event.reason)
        result = Result.objects.filter(evaluation__pk=evaluation).first()
        if result is None:
            return Feedback(verdict=event.verdict, reason=event.reason)
        return feedback_of(public_result(result.data, self._run.task_version.hidden_names))

"""A run's history from its rows, without folding thousands of events."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.verdict import Mode
from runs_app.models import LanguageModelCall, Run, RunEvent
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Edit, Place, Role
from runs_app.optimiser.evolve.config import Budget, Problem, RunConfig
from runs_app.optimiser.evolve.evaluations import LAST_MODES, Evaluations
from runs_app.optimiser.evolve.feedback import Feedback
from runs_app.optimiser.evolve.history import AskState, Candidate, CandidateState, History, Question
from runs_app.optimiser.evolve.optimizer import extended

_PLACE = ("generation", "slot", "island")
_QUESTION = ("number", "about", "verifier", "worst_usd", "worst_tokens")
_CANDIDATE = (
    *("number", "digest", "model", "title", "knobs", "reason", "votes", "verdict"),
    *("latency_ns", "spread", "speedup", "floor_fraction", "bottleneck"),
)
_STATES = {
    LanguageModelCall.Status.ANSWERED: AskState.ANSWERED,
    LanguageModelCall.Status.FAILED: AskState.FAILED,
    LanguageModelCall.Status.INTERRUPTED: AskState.FAILED,
}


class RunDetails:
    """Texts of one run, read when they are asked for, and kept for this step."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._sources: dict[int, str] = {}
        self._feedback: dict[int, Feedback | None] = {}

    def source(self, candidate: int) -> str:
        if candidate not in self._sources:
            rows = self._run.candidates.filter(number=candidate)
            self._sources[candidate] = rows.values_list("source", flat=True).get()
        return self._sources[candidate]

    def feedback(self, candidate: int) -> Feedback | None:
        """What hardware said of a candidate; None before it was measured."""
        if candidate not in self._feedback:
            rows = self._run.candidates.filter(number=candidate)
            document = rows.values_list("feedback", flat=True).get()
            decoded = codec.decode_stored(Feedback, document) if document is not None else None
            self._feedback[candidate] = decoded
        return self._feedback[candidate]

    def answer(self, ask: int) -> str:
        text: str = self._run.calls.values_list("response", flat=True).get(number=ask)
        return text

    def forget_feedback(self, candidate: int) -> None:
        """Read a candidate's feedback again the next time: there is a newer one."""
        self._feedback.pop(candidate, None)


def problem_of(run: Run) -> Problem:
    """What the run is about."""
    return codec.decode_stored(Problem, run.problem, "problem")


def config_of(run: Run) -> RunConfig:
    """How the run was to go when it began; `budget_of` tells its budget of now."""
    return codec.decode_stored(RunConfig, run.config, "config")


def budget_of(run: Run) -> Budget:
    """The latest extension, or the budget of the start."""
    extension = extension_of(run)
    return extension.budget if extension else config_of(run).budget


def config_now(run: Run) -> RunConfig:
    """How the run goes since its extensions, but for its budget."""
    extension = extension_of(run)
    return extended(config_of(run), extension.parameters if extension else {})


def load_history(run: Run) -> History:
    """The history of a locked run, as folding its events would give it."""
    history = History(RunDetails(run))
    ended = run.status in (Run.Status.FINISHED, Run.Status.STOPPED)
    history.restore(
        _candidates(run),
        stored_questions(run),
        evaluations=_evaluations(run),
        best=run.best.number if run.best else None,
        finished=events.Finished(reason=run.reason, by_budget=run.by_budget) if ended else None,
        extension=extension_of(run),
    )
    if (briefed := _latest(run, "briefed")) is not None:
        history.apply(briefed)
    return history


def stored_events(run: Run) -> list[events.Event]:
    """The run's events in their order, as a replay folds them."""
    rows = run.events.order_by("seq").values_list("kind", "payload")
    return [event_of(kind, payload) for kind, payload in rows if events.is_known(kind)]


def event_of(kind: str, payload: dict[str, object]) -> events.Event:
    """The event that a row holds; the ids of rows beside it are left out."""
    return events.decode(kind, {key: value for key, value in payload.items() if key != "row"})


def extension_of(run: Run) -> events.Extended | None:
    """The latest extension; its parameters are those of all."""
    event = _latest(run, "extended")
    assert event is None or isinstance(event, events.Extended)
    return event


def _latest(run: Run, kind: str) -> events.Event | None:
    row = RunEvent.objects.filter(run=run, kind=kind).order_by("-seq").first()
    return None if row is None else event_of(row.kind, row.payload)


def _evaluations(run: Run) -> Evaluations:
    measuring = RunEvent.objects.filter(run=run, kind="measuring")
    last = measuring.filter(payload__mode__in=[mode.value for mode in LAST_MODES])
    tried = RunEvent.objects.filter(run=run, kind="tried").count()
    evaluations = Evaluations(begun=measuring.count() - last.count() + tried)
    kinds = ("measured", "searched", "finished", "extended")
    rows = RunEvent.objects.filter(run=run, kind__in=kinds).order_by("seq")
    fields = ("candidate", "mode", "verdict", "score", "reason", "by_budget", "parameters")
    columns = rows.values_list("kind", *(f"payload__{name}" for name in fields))
    for kind, candidate, mode, verdict, score, *rest in columns.iterator(2000):
        reason, by_budget, parameters = rest
        match kind:
            case "measured":
                evaluations.measured(candidate, Mode(mode), verdict, score)
            case "searched":
                evaluations.apply(events.Searched(reason=reason, by_budget=bool(by_budget)))
            case "finished":
                evaluations.is_over = True
            case "extended":
                changed = parameters or {}
                evaluations.apply(events.Extended(budget=Budget(), parameters=changed))
    return evaluations


def stored_questions(run: Run, numbers: Collection[int] | None = None) -> Iterator[Question]:
    """The run's calls in order; with `numbers`, only those."""
    rows = run.calls.all() if numbers is None else run.calls.filter(number__in=numbers)
    more = ("role", "language_model__name", "parents", "edit", "status", "told", "problem")
    spent = ("tokens_in", "tokens_out", "cost_usd")
    rows = rows.order_by("number").values(*_QUESTION, *more, *spent, *_PLACE)
    for row in rows.iterator(2000):
        ended: dict[str, Any] = {}
        if row["told"]:
            ended = {"state": _STATES[row["status"]], "problem": row["problem"]}
            ended["tokens"] = row["tokens_in"] + row["tokens_out"]
            ended["cost_usd"] = row["cost_usd"]
        yield Question(
            **{name: row[name] for name in _QUESTION},
            role=Role(row["role"]),
            place=Place(**{name: row[name] for name in _PLACE}),
            model=row["language_model__name"],
            parents=tuple(row["parents"]),
            edit=Edit(row["edit"]),
            **ended,
        )


def _candidates(run: Run) -> Iterator[Candidate]:
    more = ("edit", "parents", "call__number", "techniques", "state", "measured", "measuring")
    rows = run.candidates.order_by("number").values(*_CANDIDATE, *more, *_PLACE)
    for row in rows.iterator(2000):
        yield Candidate(
            **{name: row[name] for name in _CANDIDATE},
            edit=Edit(row["edit"]),
            place=Place(**{name: row[name] for name in _PLACE}),
            parents=tuple(row["parents"]),
            ask=row["call__number"],
            techniques=tuple(row["techniques"]),
            state=CandidateState(row["state"]),
            measured=set(map(Mode, row["measured"])),
            measuring=set(map(Mode, row["measuring"])),
        )

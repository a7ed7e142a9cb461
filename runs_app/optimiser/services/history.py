"""A run's history from its rows, without folding thousands of events."""

from __future__ import annotations

from collections.abc import Collection, Iterator

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
_QUESTION = (
    *("number", "role", "language_model__name", "parents", "about", "verifier", "edit"),
    *("worst_usd", "worst_tokens", "status", "told", "problem", "tokens_in", "tokens_out"),
    *("cost_usd", *_PLACE),
)
_CANDIDATE = (
    *("number", "digest", "edit", "parents", "call__number", "model", "title", "knobs"),
    *("techniques", "state", "reason", "votes", "verdict", "latency_ns", "spread", "speedup"),
    *("floor_fraction", "bottleneck", "measured", "measuring", *_PLACE),
)
_STATES = {
    LanguageModelCall.Status.ANSWERED: AskState.ANSWERED,
    LanguageModelCall.Status.FAILED: AskState.FAILED,
    LanguageModelCall.Status.INTERRUPTED: AskState.FAILED,
}


class RunDetails:
    """Texts of one run, read when they are asked for, and kept for this step."""

    def __init__(self, run: Run) -> None:
        """Read nothing yet."""
        self._run = run
        self._sources: dict[int, str] = {}
        self._feedback: dict[int, Feedback | None] = {}

    def source(self, candidate: int) -> str:
        """Source of a candidate."""
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
        """Text of an answer."""
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
    for row in rows.order_by("number").values_list(*_QUESTION).iterator(2000):
        number, role, model, parents, about, verifier, edit, *rest = row
        usd, tokens, status, told, problem, tokens_in, tokens_out, cost, *place = rest
        yield Question(
            number=number,
            role=Role(role),
            place=Place(generation=place[0], slot=place[1], island=place[2]),
            model=model,
            parents=tuple(parents),
            about=about,
            verifier=verifier,
            edit=Edit(edit),
            worst_usd=usd,
            worst_tokens=tokens,
            state=_STATES[status] if told else AskState.WAITING,
            problem=problem if told else "",
            tokens=tokens_in + tokens_out if told else 0,
            cost_usd=cost if told else 0.0,
        )


def _candidates(run: Run) -> Iterator[Candidate]:
    for row in run.candidates.order_by("number").values_list(*_CANDIDATE).iterator(2000):
        number, digest, edit, parents, ask, model, title, knobs, *rest = row
        techniques, state, reason, votes, verdict, latency, spread, speedup, *rest = rest
        floor, bottleneck, measured, measuring, *place = rest
        yield Candidate(
            number=number,
            digest=digest,
            edit=Edit(edit),
            place=Place(generation=place[0], slot=place[1], island=place[2]),
            parents=tuple(parents),
            ask=ask,
            model=model,
            title=title,
            knobs=knobs,
            techniques=tuple(techniques),
            state=CandidateState(state),
            reason=reason,
            votes=votes,
            verdict=verdict,
            latency_ns=latency,
            spread=spread,
            speedup=speedup,
            floor_fraction=floor,
            bottleneck=bottleneck,
            measured={Mode(mode) for mode in measured},
            measuring={Mode(mode) for mode in measuring},
        )

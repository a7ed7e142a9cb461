"""Make an optimiser's transitions true: events, rows, calls and evaluations."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Direction, Verdict
from runs_app.core.baselines.services import ensure_baselines
from runs_app.core.messaging import queues
from runs_app.core.text import storable
from runs_app.core.work.lifecycle import evaluate
from runs_app.models import Candidate, LanguageModel, LanguageModelCall, Run, Submission
from runs_app.models.submission import columns_of
from runs_app.optimiser.evolve import events, history
from runs_app.optimiser.evolve.commands import Ask, Edit
from runs_app.optimiser.evolve.config import RunConfig
from runs_app.optimiser.evolve.evaluations import replaces_feedback
from runs_app.optimiser.evolve.events import Transition
from runs_app.optimiser.evolve.feedback import Feedback, feedback_of
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.services.history import RunDetails

_TITLE_LENGTH = 300
_CONTINUED = ("reason", "votes", "verdict", "latency_ns", "spread", "speedup")
_SEED_BITS = 31  # endpoints take signed 32-bit seeds


class Recorder:
    """Writes the transitions of one step of a locked run; `history` has applied them already."""

    def __init__(self, run: Run, config: RunConfig, past: history.History, now: datetime) -> None:
        self._run, self._config, self._history, self._now = run, config, past, now

    def record(self, transitions: list[Transition], result: EvaluationResult | None = None) -> None:
        """Store them in their order; `result` is that of the evaluation behind a `Measured`."""
        for transition in transitions:
            self._one(transition, result)

    def _one(self, transition: Transition, result: EvaluationResult | None) -> None:
        row: dict[str, str] = {}
        match transition.event:
            case events.Asked() as asked:
                assert isinstance(transition.command, Ask), "an ask comes from a command"
                row = {"call": self._ask(asked, transition.command)}
            case events.Answered() | events.Failed() as settled:
                self._settle(settled)
            case events.Drafted() as drafted:
                self._draft(drafted, transition.source)
            case events.Measuring() as measuring:
                row = self._measure(measuring)
            case events.Measured() as measured:
                self._measured(measured, result)
            case events.Voted() | events.Dropped() as judged:
                self._sync(judged.candidate)
            case _:
                pass  # columns of the run, which the step changes
        run_log.write_event(self._run, transition.event, now=self._now, row=row)

    def _ask(self, event: events.Asked, command: Ask) -> str:
        seed = history.draw(self._config.seed, "call", event.number).getrandbits(_SEED_BITS)
        same = ("number", "verifier", "about", "prompt", "prompt_version", "temperature")
        more = ("max_tokens", "worst_usd", "worst_tokens")
        call = LanguageModelCall.objects.create(
            run=self._run,
            **{name: getattr(event, name) for name in (*same, *more)},
            role=event.role.value,
            parents=list(event.parents),
            edit=event.edit.value,
            **vars(event.place),
            language_model=LanguageModel.objects.get(name=event.model),
            messages=storable(codec.encode(command.prompt.messages)),
            seed=seed,
            created_at=self._now,
        )
        transaction.on_commit(lambda: queues.enqueue_call(call.pk))
        return str(call.pk)

    def _settle(self, event: events.Answered | events.Failed) -> None:
        problem = event.problem if isinstance(event, events.Answered) else event.reason
        self._run.calls.filter(number=event.ask).update(told=True, problem=storable(problem))

    def _draft(self, event: events.Drafted, source: str) -> None:
        call = self._run.calls.get(number=event.ask) if event.ask is not None else None
        Candidate.objects.create(
            run=self._run,
            number=event.number,
            source=storable(source),
            digest=event.digest,
            edit=event.edit.value,
            **vars(event.place),
            parents=list(event.parents),
            call=call,
            model=event.model,
            title=storable(event.title)[:_TITLE_LENGTH],
            knobs=dict(event.knobs),
            techniques=list(event.techniques),
            created_at=self._now,
        )
        self._run.candidates_made = event.number

    def _measure(self, event: events.Measuring) -> dict[str, str]:
        """Queue a candidate's evaluation; ids of it and its submission, none if it cannot be."""
        candidate = self._run.candidates.select_related("submission").get(number=event.candidate)
        self._sync(event.candidate)
        submission = candidate.submission or self._submission(candidate)
        if submission is None:
            return {}  # the next step tells the optimiser why
        evaluation = evaluate(
            submission=submission,
            device=self._run.device,
            mode=event.mode,
            now=self._now,
            must_beat_ns=event.must_beat_ns,
        )
        if candidate.edit == Edit.SEED.value:
            ensure_baselines(
                version=submission.task_version,
                device=self._run.device,
                direction=submission.direction,
                now=self._now,
            )
        return {"evaluation": str(evaluation.pk), "submission": str(submission.pk)}

    def _submission(self, candidate: Candidate) -> Submission | None:
        try:
            solution = candidate_solution(self._run, candidate.source)
        except DataError:
            return None
        model = LanguageModel.objects.filter(name=candidate.model).first()
        candidate.submission = submission_of(self._run, solution, model, now=self._now)
        candidate.save(update_fields=["submission"])
        return candidate.submission

    def _measured(self, event: events.Measured, result: EvaluationResult | None) -> None:
        candidate = self._history.candidates[event.candidate]
        if event.mode not in candidate.measured:  # lost, and to be measured again
            self._sync(event.candidate)
            return
        columns: dict[str, object] = {"measured_at": self._now}
        if event.best:
            columns["was_best"] = True
        known = len(candidate.measured) > 1
        if not known or replaces_feedback(event.mode, event.verdict):
            lost = Feedback(verdict=event.verdict, reason=event.reason)
            columns["feedback"] = storable(codec.encode(feedback_of(result) if result else lost))
        self._sync(event.candidate, **columns)
        details = self._history.details
        if isinstance(details, RunDetails):
            details.forget_feedback(event.candidate)
        if (
            candidate.edit is Edit.SEED
            and self._run.seed_latency_ns is None
            and event.verdict == Verdict.CORRECT
        ):
            self._run.seed_latency_ns = event.latency_ns

    def _sync(self, number: int, **columns: object) -> None:
        """Bring a candidate's row to what the history says of it."""
        candidate = self._history.candidates[number]
        columns |= {name: getattr(candidate, name) for name in _CONTINUED}
        self._run.candidates.filter(number=number).update(
            state=candidate.state.value,
            floor_fraction=candidate.floor_fraction,
            bottleneck=candidate.bottleneck,
            measured=sorted(mode.value for mode in candidate.measured),
            measuring=sorted(mode.value for mode in candidate.measuring),
            **columns,
        )


def submission_of(
    run: Run, solution: Solution, model: LanguageModel | None, *, now: datetime
) -> Submission:
    """A kernel of the run as what runners measure; it is on no board."""
    return Submission.objects.create(
        author=run.user,
        task_version=run.task_version,
        **columns_of(solution),
        agent=run.agent,
        language_model=model,
        private=run.private,
        origin=Submission.Origin.RUN,
        run=run,
        created_at=now,
    )


def candidate_solution(run: Run, source: str) -> Solution:
    """A candidate's source, with the files that stay, as a solution.

    Raises `DataError` for one that no compiler may see.
    """
    return Solution(
        source=source,
        language=run.device.language,
        direction=Direction(run.direction),
        entry=run.problem.get("seed_entry", ""),
        files=run.problem.get("seed_files", {}),
    )

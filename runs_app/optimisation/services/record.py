"""Make an optimiser's moves true: events, rows, calls and evaluations."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Direction, Mode, Verdict
from runs_app.baselines.services import ensure_baselines
from runs_app.evolve import facts, history
from runs_app.evolve.config import RunConfig
from runs_app.evolve.feedback import Feedback, feedback_of
from runs_app.evolve.outcomes import Move
from runs_app.evolve.wishes import Ask, Edit
from runs_app.messaging import queues
from runs_app.models import Candidate, LanguageModel, LanguageModelCall, Run, Submission
from runs_app.optimisation.services import log as run_log
from runs_app.optimisation.services.history import RunDetails
from runs_app.text import storable
from runs_app.work.lifecycle import evaluate

_TITLE_LENGTH = 300
_CONTINUED = ("reason", "votes", "verdict", "latency_ns", "spread", "speedup")
_SEED_BITS = 31  # endpoints take signed 32-bit seeds


class Recorder:
    """Writes the moves of one step of a locked run; `history` has applied them already."""

    def __init__(self, run: Run, config: RunConfig, past: history.History, now: datetime) -> None:
        """Write at `now`."""
        self._run, self._config, self._history, self._now = run, config, past, now

    def record(self, moves: list[Move], result: EvaluationResult | None = None) -> None:
        """Store moves in their order; `result` is that of the evaluation behind a `Measured`."""
        for move in moves:
            self._one(move, result)

    def _one(self, move: Move, result: EvaluationResult | None) -> None:
        row: dict[str, str] = {}
        match move.fact:
            case facts.Asked() as asked:
                assert isinstance(move.wish, Ask), "an ask comes from a wish"
                row = {"call": self._ask(asked, move.wish)}
            case facts.Answered() | facts.Failed() as settled:
                self._settle(settled)
            case facts.Drafted() as drafted:
                self._draft(drafted, move.source)
            case facts.Measuring() as measuring:
                row = self._measure(measuring)
            case facts.Measured() as measured:
                self._measured(measured, result)
            case facts.Voted() | facts.Dropped() as judged:
                self._sync(judged.candidate)
            case facts.Finished() | facts.Extended():
                pass  # columns of the run, which the step changes
        run_log.write_fact(self._run, move.fact, now=self._now, row=row)

    def _ask(self, fact: facts.Asked, wish: Ask) -> str:
        seed = history.draw(self._config.seed, "call", fact.number).getrandbits(_SEED_BITS)
        call = LanguageModelCall.objects.create(
            run=self._run,
            number=fact.number,
            role=fact.role.value,
            verifier=fact.verifier,
            about=fact.about,
            parents=list(fact.parents),
            edit=fact.edit.value,
            **_place(fact.place),
            language_model=LanguageModel.objects.get(name=fact.model),
            prompt=fact.prompt,
            prompt_version=fact.prompt_version,
            messages=storable(codec.encode(wish.prompt.messages)),
            temperature=fact.temperature,
            max_tokens=fact.max_tokens,
            seed=seed,
            worst_usd=fact.worst_usd,
            worst_tokens=fact.worst_tokens,
            created_at=self._now,
        )
        transaction.on_commit(lambda: queues.enqueue_call(call.pk))
        return str(call.pk)

    def _settle(self, fact: facts.Answered | facts.Failed) -> None:
        problem = fact.problem if isinstance(fact, facts.Answered) else fact.reason
        self._run.calls.filter(number=fact.ask).update(told=True, problem=storable(problem))

    def _draft(self, fact: facts.Drafted, source: str) -> None:
        call = self._run.calls.get(number=fact.ask) if fact.ask is not None else None
        Candidate.objects.create(
            run=self._run,
            number=fact.number,
            source=storable(source),
            digest=fact.digest,
            edit=fact.edit.value,
            **_place(fact.place),
            parents=list(fact.parents),
            call=call,
            model=fact.model,
            title=storable(fact.title)[:_TITLE_LENGTH],
            knobs=dict(fact.knobs),
            techniques=list(fact.techniques),
            created_at=self._now,
        )
        self._run.candidates_made = fact.number

    def _measure(self, fact: facts.Measuring) -> dict[str, str]:
        """Queue an evaluation of the candidate's trial; the ids of both, none if it cannot be."""
        candidate = self._run.candidates.select_related("trial").get(number=fact.candidate)
        self._sync(fact.candidate)
        trial = candidate.trial or self._trial(candidate)
        if trial is None:
            return {}  # the next step tells the optimiser why
        evaluation = evaluate(
            submission=trial, device=self._run.device, mode=fact.mode, now=self._now
        )
        if candidate.edit == Edit.SEED.value:
            ensure_baselines(
                version=trial.task_version,
                device=self._run.device,
                direction=trial.direction,
                now=self._now,
            )
        return {"evaluation": str(evaluation.pk), "submission": str(trial.pk)}

    def _trial(self, candidate: Candidate) -> Submission | None:
        try:
            solution = trial_solution(self._run, candidate.source)
        except DataError:
            return None
        candidate.trial = Submission.objects.create(
            author=self._run.user,
            task_version=self._run.task_version,
            source=solution.source,
            language=solution.language.value,
            direction=solution.direction.value,
            digest=solution.digest(),
            agent=self._run.agent,
            language_model=LanguageModel.objects.filter(name=candidate.model).first(),
            private=self._run.private,
            origin=Submission.Origin.RUN,
            run=self._run,
            created_at=self._now,
        )
        candidate.save(update_fields=["trial"])
        return candidate.trial

    def _measured(self, fact: facts.Measured, result: EvaluationResult | None) -> None:
        candidate = self._history.candidates[fact.candidate]
        if fact.mode not in candidate.measured:  # lost, and to be measured again
            self._sync(fact.candidate)
            return
        columns: dict[str, Any] = {"measured_at": self._now}
        if fact.best:
            columns["was_best"] = True
        known = len(candidate.measured) > 1
        failed_profile = fact.mode is Mode.PROFILE and fact.verdict != Verdict.CORRECT
        if known and (failed_profile or fact.verdict == Verdict.SYSTEM_ERROR):
            pass  # what failed hides nothing known before
        elif result is not None:
            columns["feedback"] = storable(codec.encode(feedback_of(result)))
        else:
            lost = Feedback(verdict=fact.verdict, reason=fact.reason)
            columns["feedback"] = codec.encode(lost)
        self._sync(fact.candidate, **columns)
        details = self._history.details
        if isinstance(details, RunDetails):
            details.forget_feedback(fact.candidate)
        if (
            candidate.edit is Edit.SEED
            and self._run.seed_latency_ns is None
            and fact.verdict == Verdict.CORRECT
        ):
            self._run.seed_latency_ns = fact.latency_ns

    def _sync(self, number: int, **columns: Any) -> None:
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


def trial_solution(run: Run, source: str) -> Solution:
    """A candidate's source as a solution; raises `DataError` for one that no compiler may see."""
    language = run.device.language
    return Solution(source=source, language=language, direction=Direction(run.direction))


def _place(place: Any) -> dict[str, int]:
    return {"generation": place.generation, "slot": place.slot, "island": place.island}

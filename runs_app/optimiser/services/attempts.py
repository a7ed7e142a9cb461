"""Kernels that a command tries before it answers: measured like candidates, in the run's budget."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.db import InterfaceError, OperationalError, connection, transaction

from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import Mode
from runs_app.core.work.lifecycle import evaluate
from runs_app.models import Evaluation, LanguageModelCall, Run
from runs_app.optimiser.evolve import budget, events
from runs_app.optimiser.evolve.config import ProfileMode
from runs_app.optimiser.evolve.feedback import feedback_of
from runs_app.optimiser.evolve.sections import sections, text_of
from runs_app.optimiser.llm.tries import Refused
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.services.advance import evaluated
from runs_app.optimiser.services.history import budget_of, load_history
from runs_app.optimiser.services.record import candidate_solution, submission_of

_AWAY = (OperationalError, InterfaceError)


class RunAttempts:
    """A `runs_app.optimiser.llm.tries.Measurer` for one call of a run."""

    def __init__(self, call: LanguageModelCall, clock: Callable[[], datetime]) -> None:
        assert call.run is not None, "only runs have attempts"
        self._call, self._clock = call, clock
        self.most = call.language_model.attempts
        self.suffix = call.run.device.language.suffix

    def begin(self, source: str) -> str:
        """Queue a kernel; returns the id of its evaluation. Raises `Refused`."""
        try:
            with transaction.atomic():
                return str(self._begin(source, self._clock()).pk)
        except _AWAY:
            connection.close()
            raise Refused(
                "the site's database is unavailable; try again with another file name"
            ) from None

    def report(self, key: str) -> str | None:
        """Its verdict, times and first error, as prompts show them; None before its end."""
        try:
            row = Evaluation.objects.select_related("task_version").get(pk=key)
            outcome = evaluated(row, 0) if row.is_over else None
        except _AWAY:  # the command works on meanwhile
            connection.close()
            return None
        if outcome is None:
            return None
        if outcome.result is None:
            return f"It was not measured: {outcome.reason}."
        return text_of(sections(feedback_of(outcome.result), ProfileMode.NONE, ""))

    def _begin(self, source: str, now: datetime) -> Evaluation:
        assert self._call.run_id is not None, "only runs have attempts"
        assert self._call.number is not None, "a run's call has a number"
        run = run_log.lock(self._call.run_id)
        number = self._number(run)
        try:
            solution = candidate_solution(run, source)
        except DataError as error:
            raise Refused(str(error)) from None
        submission = submission_of(run, solution, self._call.language_model, now=now)
        row = evaluate(submission=submission, device=run.device, mode=Mode.QUICK, now=now)
        event = events.Tried(ask=self._call.number, number=number)
        ids = {"evaluation": str(row.pk), "submission": str(submission.pk)}
        run_log.write_event(run, event, now=now, row=ids)
        run.evaluations += 1
        run.save(update_fields=["evaluations", "events_stored"])
        return row

    def _number(self, run: Run) -> int:
        """Of the attempt that begins now; raises `Refused`."""
        if run.status != Run.Status.RUNNING:
            raise Refused("the run has stopped")
        used = run.events.filter(kind="tried", payload__ask=self._call.number).count()
        if used >= self.most:
            raise Refused(f"all {self.most} attempts of this answer are used up")
        so_far = budget.spent(load_history(run))
        if refusal := budget.evaluations_refusal(budget_of(run), so_far):
            raise Refused(refusal)
        return used + 1

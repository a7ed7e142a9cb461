"""One short step of a run: tell the optimiser what came back, carry out what it commands."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import F
from redis.exceptions import RedisError

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Evaluation, LanguageModelCall, Result, Run, Status
from runs_app.optimiser.evolve import budget, events
from runs_app.optimiser.evolve.evaluations import LAST_MODES
from runs_app.optimiser.evolve.events import Answer, Evaluated, Outcome, Transition
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.optimizer import Optimizer
from runs_app.optimiser.selectors.runs import active_s
from runs_app.optimiser.services import end as run_end
from runs_app.optimiser.services import log as run_log
from runs_app.optimiser.services.brief import briefing_of
from runs_app.optimiser.services.history import config_of, load_history, problem_of
from runs_app.optimiser.services.record import Recorder
from tasks_app.disclosure import public_result, public_text

log = logging.getLogger(__name__)

MOST_TRANSITIONS = 1000  # of one step: so many are decided at once only by a strategy gone wrong
FAILURES_IN_A_ROW = 5
DEATHS_IN_A_ROW = 5
_OVER = LanguageModelCall.Status


def advance_run(*, run_id: UUID | str, now: datetime) -> int:
    """Take the next step of a run; returns how many events it made.

    Steps of one run take turns. One that nothing has happened since the last does nothing. An
    error of ours pauses the run with the reason, and is logged; so do steps whose process died.
    """
    if _begin(run_id) > DEATHS_IN_A_ROW:
        reason = (
            f"its last {DEATHS_IN_A_ROW} steps crashed, perhaps because the host ran out of memory"
        )
        log.error("run %s cannot be advanced: %s", run_id, reason)
        _pause_broken(run_id, reason, now)
        return 0
    try:
        with transaction.atomic():
            return _Step(run_log.lock(run_id), now).take()
    except Run.DoesNotExist:
        return 0
    except (DatabaseError, RedisError):
        with suppress(DatabaseError):
            Run.objects.filter(pk=run_id).update(steps_begun=0)
        raise  # the run is good: it goes on when they are back
    except Exception as error:
        log.exception("run %s cannot be advanced", run_id)
        _pause_broken(run_id, f"{type(error).__name__}: {error}", now)
        return 0


def _begin(run_id: UUID | str) -> int:
    """Count a step of a running run before it begins; returns the steps without an end, it too."""
    rows = Run.objects.filter(pk=run_id, status=Run.Status.RUNNING)
    rows.update(steps_begun=F("steps_begun") + 1)
    return rows.values_list("steps_begun", flat=True).first() or 0


class _Step:
    """One step of a locked run."""

    def __init__(self, run: Run, now: datetime) -> None:
        self.run, self.now = run, now
        config = config_of(run)
        self.history = load_history(run)
        self.optimizer = Optimizer(problem_of(run), config, self.history)
        self.recorder = Recorder(run, config, self.history, now)
        self.budget = self.history.budget or config.budget
        self.events = 0

    def take(self) -> int:
        """Tell first, then ask until nothing comes; keep the run's columns true."""
        pause = self._tell()
        if self.run.status == Run.Status.RUNNING:
            pause = pause or self._retired()
            if pause:
                run_end.pause(self.run, by="", reason=pause, now=self.now)
            else:
                if self.history.searched is None:
                    self._end_by_time()
                self._brief()
                self._ask()
            if self.history.finished is not None:
                finished = self.history.finished
                best = self.history.best.number if self.history.best else None
                run_end.finish(self.run, best, finished, now=self.now)
        self._save()
        return self.events

    def _tell(self) -> str:
        """Returns why the run must pause; empty if it need not."""
        pause = ""
        for call in self._calls():
            self._record(self.optimizer.tell(_outcome(call)))
            if call.status == _OVER.ANSWERED:
                self.run.failures = 0
                continue
            self.run.failures += call.error_kind != run_end.UNSENT
            if call.error_kind == "auth":
                pause = call.error
            elif self.run.failures >= FAILURES_IN_A_ROW:
                pause = pause or f"{self.run.failures} calls failed in a row: {call.error}"
        for outcome in self._evaluations():
            self._record(self.optimizer.tell(outcome), outcome.result)
            pause = pause or self._broken(outcome)
        return pause

    def _broken(self, outcome: Evaluated) -> str:
        """Why measuring makes no sense now: the latest evaluations all ended through our own fault.

        Those before a resumption are forgiven, and what somebody has cancelled tells nothing.
        """
        is_good = outcome.result is not None and outcome.result.verdict is not Verdict.SYSTEM_ERROR
        if is_good or self.run.resumed_at is None:
            return ""
        ended = Evaluation.objects.filter(
            submission__run=self.run, status=Status.FINISHED, finished_at__gte=self.run.resumed_at
        ).order_by("-finished_at", "-submission__candidate__number")
        latest = list(ended.values_list("verdict", flat=True)[:FAILURES_IN_A_ROW])
        if len(latest) < FAILURES_IN_A_ROW or set(latest) != {Verdict.SYSTEM_ERROR.value}:
            return ""
        reason = outcome.result.reason if outcome.result else outcome.reason
        return f"{FAILURES_IN_A_ROW} evaluations in a row ended without a verdict: {reason}"

    def _brief(self) -> None:
        """Let prompts tell what was measured of the task and the device since they last did.

        A step without news does not look, and nothing that was told is taken back.
        """
        run, problem, history = self.run, self.optimizer.problem, self.history
        is_over = history.searched is not None or history.finished is not None
        if not self.events or is_over or not self.optimizer.config.models:
            return
        briefing = briefing_of(run.task_version, run.device, problem.direction)
        if briefing.names() > problem.names():
            briefed = events.Briefed(briefing=briefing)
            history.apply(briefed)
            self._record([Transition(event=briefed)])

    def _ask(self) -> None:
        while transitions := self.optimizer.ask():
            self._record(transitions)
            if self.events > MOST_TRANSITIONS:
                raise RuntimeError(f"the strategy made {self.events} transitions in one step")

    def _record(
        self, transitions: list[Transition], result: EvaluationResult | None = None
    ) -> None:
        self.recorder.record(transitions, result)
        self.events += len(transitions)

    def _end_by_time(self) -> None:
        """If its running time is used up, what the search waits for is taken back."""
        refusal = budget.wall_time_refusal(self.budget, active_s(self.run, self.now))
        if not refusal:
            return
        ended = self.optimizer.end(refusal, by_budget=True)
        self.history.apply(ended.event)
        self._record([ended])
        if self.history.searched is not None:
            run_end.drop_what_waits(self.run, spared=LAST_MODES, now=self.now)

    def _calls(self) -> Iterator[LanguageModelCall]:
        over = (_OVER.ANSWERED, _OVER.FAILED, _OVER.INTERRUPTED)
        rows = self.run.calls.filter(told=False, status__in=over)
        yield from rows.order_by("ended_at", "number")

    def _evaluations(self) -> Iterator[Evaluated]:
        """Those that the optimiser waits for and that are over."""
        waiting = {n: c for n, c in self.history.candidates.items() if c.measuring}
        if not waiting:
            return
        latest = self._latest_evaluations(list(waiting))
        awaited = {latest[n, mode]: n for n, c in waiting.items() for mode in c.measuring}
        rows = Evaluation.objects.filter(
            pk__in=[pk for pk in awaited if pk], status__in=(Status.FINISHED, Status.CANCELLED)
        ).select_related("task_version")
        for row in rows.order_by("finished_at", "pk"):
            yield evaluated(row, awaited[str(row.pk)])
        for number, mode in [key for key, pk in latest.items() if not pk]:
            if mode in waiting[number].measuring:
                yield _unbuildable(number, mode)

    def _latest_evaluations(self, candidates: list[int]) -> dict[tuple[int, Mode], str]:
        """Ids by candidate and mode, of those that were not lost before; "" without any."""
        rows = self.run.events.filter(kind="measuring", payload__candidate__in=candidates)
        payloads = rows.order_by("seq").values_list("payload", flat=True)
        return {
            (payload["candidate"], Mode(payload["mode"])): payload.get("row", {}).get(
                "evaluation", ""
            )
            for payload in payloads
        }

    def _retired(self) -> str:
        task = self.run.task_version.task
        if task.state == task.State.PUBLISHED:
            return ""
        return (
            f"the task {task.slug} is {task.get_state_display().lower()}, so it doesn't "
            f"accept kernels"
        )

    def _save(self) -> None:
        """Repeat on the row what the history says, for lists."""
        run, best = self.run, self.history.best
        so_far = budget.spent(self.history)
        run.usd = so_far.usd if self.history.is_priced else None
        run.tokens, run.evaluations = so_far.tokens, so_far.evaluations
        if best is None:
            run.best = None
        elif run.best is None or run.best.number != best.number:
            run.best = run.candidates.get(number=best.number)
        if run.status == Run.Status.RUNNING:
            run.reason = _after_search(self.history)
            self._keep_time()
        run.best_latency_ns = best.latency_ns if best else None
        run.advanced_at, run.steps_begun = self.now, 0
        run.save()

    def _keep_time(self) -> None:
        """The clock stands still while the best are ranked, and goes on with the search."""
        run, is_searching = self.run, self.history.searched is None
        if not is_searching and run.searched_at is None:
            run.searched_at = self.now
        elif is_searching and run.searched_at is not None:
            run.active_s, run.resumed_at, run.searched_at = active_s(run, self.now), self.now, None


def _after_search(history: History) -> str:
    """What a run does that is over with its search; empty while it searches."""
    if history.searched is None:
        return ""
    return (
        "its best kernels are being ranked, so their order may still change; the search ended: "
        f"{history.searched.reason}"
    )


def _outcome(call: LanguageModelCall) -> Outcome:
    assert call.number is not None, "a run's call has a number"
    cost: Any = {name: getattr(call, name) for name in ("tokens_in", "tokens_out", "cost_usd")}
    if call.status == _OVER.ANSWERED:
        sent_at, ended_at = call.sent_at, call.ended_at
        assert sent_at is not None, "an answered call was sent"
        assert ended_at is not None, "an answered call has ended"
        latency_s = (ended_at - sent_at).total_seconds()
        answered = events.Answered(ask=call.number, latency_s=latency_s, **cost)
        end = call.finish_reason or "unknown"
        return Answer(event=answered, text=call.response, finish_reason=end)
    failed = events.Failed(ask=call.number, reason=call.error, **cost)
    return Answer(event=failed, text=call.response)


def evaluated(row: Evaluation, candidate: int) -> Evaluated:
    """What the optimiser may know of an evaluation: nothing of hidden workloads."""
    result = Result.objects.filter(evaluation=row).first()
    if result is None:
        reason = row.reason or f"the evaluation was {row.status.lower()}"
        reason = public_text(reason, row.task_version.hidden_names)
        return Evaluated(candidate=candidate, mode=Mode(row.mode), reason=reason)
    public = public_result(result.data, row.task_version.hidden_names)
    return Evaluated(candidate=candidate, mode=Mode(row.mode), result=public)


def _unbuildable(candidate: int, mode: Mode) -> Evaluated:
    """What comes of a source that no runner was given."""
    result = EvaluationResult(
        evaluation_id="",
        attempt=1,
        verdict=Verdict.COMPILE_ERROR,
        reason="this source can't be compiled: it is empty or too long",
        mode=mode,
        device="",
        task="",
        task_digest="",
        solution_digest="",
    )
    return Evaluated(candidate=candidate, mode=mode, result=result)


@transaction.atomic
def _pause_broken(run_id: UUID | str, error: str, now: datetime) -> None:
    run = run_log.lock(run_id)
    if run.status == Run.Status.RUNNING:
        reason = f"the site failed; its log has the details: {error}"
        run_end.pause(run, by="", reason=reason, now=now)
        run.steps_begun = 0
        run.save()

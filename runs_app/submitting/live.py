"""The part of a page that changes while an evaluation runs, and shows its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode
from runs_app.core.baselines.missing import awaited_baselines, missing_baselines
from runs_app.core.baselines.selectors import Baselines, baselines
from runs_app.core.files import shown_files
from runs_app.core.integrity.board_place import board_place
from runs_app.core.integrity.eligibility import Why
from runs_app.core.integrity.page import IntegrityView, integrity_view
from runs_app.core.integrity.selectors import may_stop
from runs_app.core.messaging.broadcast import events as stored_events
from runs_app.core.messaging.broadcast import logs_of_lost
from runs_app.core.queue.selectors import verdict_in_s, waiting_reason
from runs_app.core.work.access import public_reason, shown_result
from runs_app.core.work.environments import with_peaks
from runs_app.core.work.estimate import in_words
from runs_app.core.work.result_state import baseline_noun, compared_with
from runs_app.models import Evaluation, Quarantine, Status, Submission
from runs_app.submitting import page as evaluation_page
from runs_app.submitting import profile_page
from runs_app.submitting.citation import is_of_fewer_sizes
from runs_app.submitting.diagnostics import Diagnostic, as_json, diagnostics
from runs_app.submitting.pictures.comparison import comparison, workload_plot
from runs_app.submitting.pictures.plot import Plot
from runs_app.submitting.pictures.roofline import Roofline, roofline
from runs_app.submitting.pictures.roofline import missing as no_roofline
from runs_app.submitting.profile_page import Beside, ProfileStep, beside, profile_step
from runs_app.submitting.selectors import Rival, rivals
from runs_app.submitting.summary import Facts, Summary, summary
from tasks_app.disclosure import sees_hidden
from tasks_app.people import Viewer
from tasks_app.templatetags.source import ShownFile


@dataclass(frozen=True, kw_only=True)
class ShownResult:
    """What a result shows; nothing before there is one."""

    rivals: list[Rival] = field(default_factory=list)
    known: Baselines = field(default_factory=Baselines)
    rows: list[evaluation_page.WorkloadRow] = field(default_factory=list)
    coverage: str = ""
    baselines: list[str] = field(default_factory=list)
    libraries: Mapping[str, float] = field(default_factory=dict)
    slow_baseline: str = ""
    threads: str = ""
    limits: list[str] = field(default_factory=list)
    above_limit: str = ""
    environment: list[tuple[str, str]] = field(default_factory=list)
    profile: profile_page.ProfileView | None = None
    profiled: Evaluation | None = None
    """Whose the profile is, if it isn't this evaluation's own."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    comparison: Plot | None = None
    workload_plot: Plot | None = None
    roofline: Roofline | None = None
    no_roofline: str = ""

    @property
    def has_limits(self) -> bool:
        """Whether a limit or a measured peak of any workload is known."""
        return any(row.floor_ns or row.measured_fraction for row in self.rows)

    @property
    def diagnostics_json(self) -> list[dict[str, object]]:
        """For the editor's script."""
        return as_json(self.diagnostics)


@dataclass(frozen=True, kw_only=True)
class Live:
    """What the template of the part that changes while an evaluation runs needs."""

    evaluation: Evaluation
    result: EvaluationResult | None
    shown: ShownResult
    missing: Mapping[str, str]
    beside: Beside
    integrity: IntegrityView
    summary: Summary
    stages: list[evaluation_page.StageRow]
    queue_state: str
    last_seq: object
    waited_s: float
    took_s: float | None
    left_s: float | None
    """Seconds until its verdict while it runs, by what its like took; None if unknown."""
    is_mine: bool
    may_cancel: bool
    is_admin: bool
    lost_logs: list[tuple[int, str]]

    @property
    def left_words(self) -> str:
        """How long it still takes, for people, as the page's script says it from then on."""
        left_s = self.left_s or 0
        return f"Verdict in about {in_words(left_s)}" if left_s > 1 else "Taking longer than usual"

    @property
    def profile_step(self) -> ProfileStep | None:
        """What leads to the kernel's profile."""
        return profile_step(self.evaluation, self.beside, is_mine=self.is_mine)

    @property
    def submission(self) -> Submission:
        """What is evaluated."""
        return self.evaluation.submission

    @cached_property
    def files(self) -> tuple[ShownFile, ...]:
        """The files of the submission."""
        return shown_files(self.submission)

    @property
    def spreads(self) -> dict[str, float | None]:
        """Half the intervals of its time and speedups; they hold what evaluations differ by."""
        names = ("latency", "speedup", "eager", "compiled")
        return {name: self.evaluation.spread(name) for name in names}

    @property
    def over(self) -> str:
        """What its speedup is compared with, as a noun."""
        return baseline_noun(compared_with(self.evaluation))

    @property
    def is_measured_here(self) -> bool:
        """Whether runners of this site work at it."""
        return not self.evaluation.imported

    @property
    def is_of_fewer_sizes(self) -> bool:
        """Whether the measured version lacks unlisted sizes of this site's."""
        return self.result is not None and is_of_fewer_sizes(self.evaluation, self.result)

    @property
    def shows_audit(self) -> bool:
        """Whether it says what an audit found, or lets an admin begin one."""
        if self.evaluation.mode != Mode.RANKED:
            return False
        may_begin = self.is_admin and self.evaluation.is_correct and self.is_measured_here
        return self.integrity.board_audit is not None or may_begin

    @property
    def has_findings(self) -> bool:
        """Whether anything was found out, beside the verdict."""
        return bool(
            self.shown.rows
            or (self.result and self.result.mismatch)
            or self.integrity.suspicions
            or self.evaluation.quarantine != Quarantine.NONE
            or self.integrity.audit_report
            or self.shows_audit
        )


def live_view(evaluation: Evaluation, user: Viewer, now: datetime) -> Live:
    """An evaluation as `user` may see it now."""
    events = stored_events(evaluation)
    if not evaluation.is_over:
        # The row is never older than its events: nothing would tell the page of what it lacks.
        evaluation.refresh_from_db()
    result = shown_result(evaluation, user)
    is_admin, near = sees_hidden(user), beside(evaluation, user)
    shown = _shown(evaluation, result, user, near) if result else ShownResult()
    missing = missing_baselines(evaluation, result)
    integrity = integrity_view(evaluation, result, user)
    mine = user.is_authenticated and (user.pk == evaluation.submission.author_id or user.is_staff)
    started_at, ended_at = evaluation.started_at, evaluation.finished_at or now
    return Live(
        evaluation=evaluation,
        result=result,
        shown=shown,
        missing=missing,
        beside=near,
        integrity=integrity,
        summary=summary(
            replace(
                _facts(evaluation, result, shown, integrity, user),
                missing=missing,
                reason=public_reason(evaluation, user),
                waiting_reason=waiting_reason(evaluation, now),
            )
        ),
        stages=evaluation_page.stage_rows(
            evaluation.mode, events, evaluation.attempt, result, is_over=evaluation.is_over
        ),
        queue_state=_queue_state(evaluation),
        last_seq=events[-1]["seq"] if events else 0,
        waited_s=((started_at or ended_at) - evaluation.queued_at).total_seconds(),
        took_s=(ended_at - started_at).total_seconds() if started_at else None,
        left_s=verdict_in_s(evaluation, now) if evaluation.status == Status.RUNNING else None,
        is_mine=mine,
        may_cancel=mine and may_stop(evaluation, user),
        is_admin=is_admin,
        lost_logs=logs_of_lost(evaluation) if is_admin and evaluation.attempt > 1 else [],
    )


def _facts(
    evaluation: Evaluation,
    result: EvaluationResult | None,
    shown: ShownResult,
    integrity: IntegrityView,
    user: Viewer,
) -> Facts:
    return Facts(
        evaluation=evaluation,
        result=result,
        why=integrity.eligibility,
        awaited=awaited_baselines(evaluation, result) if evaluation.is_correct else "",
        has_old_baselines=bool(shown.known.times_ns),
        audit=integrity.board_audit,
        diagnostics=shown.diagnostics,
        rivals=shown.rivals,
        limit=shown.profile.headline if shown.profile else "",
        place=board_place(evaluation, user) if integrity.eligibility is Why.COUNTS else None,
    )


def _shown(
    evaluation: Evaluation, result: EvaluationResult, user: Viewer, others: Beside
) -> ShownResult:
    result = replace(result, environment=with_peaks(result.environment, evaluation))
    rows = evaluation_page.workload_rows(result)
    near = rivals(evaluation, user) if evaluation.is_correct else []
    profiled = None if result.profile else others.profile
    told = shown_result(profiled, user) if profiled else result
    known = _known_baselines(evaluation, result)
    dtype = evaluation.task_version.dtype
    libraries = evaluation_page.library_speedups(result, evaluation.task_version)
    picture = comparison(evaluation, rows, near, known, libraries)
    is_scored = evaluation.mode != Mode.AUDIT  # the ranked result that it judges has the score
    return ShownResult(
        rivals=near,
        known=known,
        rows=rows,
        coverage=evaluation_page.coverage(evaluation, rows) if rows else "",
        baselines=evaluation_page.baseline_names(result) if rows else [],
        libraries=libraries,
        slow_baseline=evaluation_page.slow_baseline_sentence(rows),
        threads=evaluation_page.threads_sentence(result.environment),
        limits=evaluation_page.limit_sentences(result.environment),
        above_limit=evaluation_page.above_limit_sentence(result, dtype),
        environment=evaluation_page.environment_rows(result.environment),
        profile=profile_page.profile_view(told.profile if told else None),
        profiled=profiled,
        diagnostics=diagnostics(result.build, result.profile, shown_files(evaluation.submission)),
        comparison=picture if evaluation.is_correct and is_scored else None,
        workload_plot=workload_plot(rows) if is_scored else None,
        roofline=roofline(result, rows, dtype),
        no_roofline=no_roofline(result, rows, dtype),
    )


def _known_baselines(evaluation: Evaluation, result: EvaluationResult) -> Baselines:
    """Those of other evaluations, for a correct result that has none of its own."""
    if evaluation.speedup_best or not evaluation.is_correct or result.pending_baselines:
        return Baselines()
    return baselines(evaluation.task_version, evaluation.device, evaluation.direction)


def _queue_state(evaluation: Evaluation) -> str:
    """How the wait for a runner ended, or that it goes on, in the words of stages."""
    if evaluation.status == Status.QUEUED:
        return "running"
    never_began = evaluation.is_over and evaluation.started_at is None
    return "canceled" if never_began else "done"

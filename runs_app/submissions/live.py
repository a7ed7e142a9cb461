"""The part of a page that changes while an evaluation runs, and shows its verdict."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runs_app.baselines.selectors import Baselines, awaited_baselines, baselines
from runs_app.integrity.selectors import may_stop
from runs_app.integrity.views import evaluation_context
from runs_app.models import Evaluation, Status
from runs_app.queue.events import events as stored_events
from runs_app.queue.events import logs_of_lost
from runs_app.queue.selectors import waiting_reason
from runs_app.submissions import page as evaluation_page
from runs_app.submissions import profile_page
from runs_app.submissions.diagnostics import as_json, diagnostics
from runs_app.submissions.pictures.headline import Headline, headline
from runs_app.submissions.pictures.roofline import missing as no_roofline
from runs_app.submissions.pictures.roofline import roofline
from runs_app.submissions.pictures.workloads import hidden_sentence, workload_plot
from runs_app.submissions.selectors import rivals
from runs_app.work.access import public_reason, result_document
from tasks_app.disclosure import sees_hidden
from tasks_app.people import Viewer


def live_context(evaluation: Evaluation, user: Viewer, now: datetime) -> dict[str, Any]:
    """What the template of the part that changes while an evaluation runs needs."""
    document = result_document(evaluation, user)
    events = stored_events(evaluation)
    mine = user.is_authenticated and (user.pk == evaluation.submission.author_id or user.is_staff)
    started_at, ended_at = evaluation.started_at, evaluation.finished_at or now
    return (
        evaluation_context(evaluation, document, user)
        | _result_context(evaluation, document, user)
        | {
            "evaluation": evaluation,
            "submission": evaluation.submission,
            "document": document,
            "stages": evaluation_page.stage_rows(
                evaluation.mode, events, evaluation.attempt, document, is_over=evaluation.is_over
            ),
            "queue_state": _queue_state(evaluation),
            "last_seq": events[-1]["seq"] if events else 0,
            "reason": public_reason(evaluation, user),
            "waiting_reason": waiting_reason(evaluation, now),
            "waited_s": ((started_at or ended_at) - evaluation.queued_at).total_seconds(),
            "took_s": (ended_at - started_at).total_seconds() if started_at else None,
            "is_mine": mine,
            "may_cancel": mine and may_stop(evaluation, user),
            "is_admin": sees_hidden(user),
            "lost_logs": logs_of_lost(evaluation) if _may_have_lost(evaluation, user) else [],
        }
    )


def _may_have_lost(evaluation: Evaluation, user: Viewer) -> bool:
    return evaluation.attempt > 1 and sees_hidden(user)


def _result_context(
    evaluation: Evaluation, document: dict[str, Any] | None, user: Viewer
) -> dict[str, Any]:
    """What a result shows; nothing before there is one."""
    if document is None:
        return {"diagnostics_json": []}
    rows = evaluation_page.workload_rows(document)
    found = diagnostics(document)
    return {
        "awaited": awaited_baselines(evaluation, document),
        "rows": rows,
        "baselines": evaluation_page.baseline_names(rows),
        "slow_baseline": evaluation_page.slow_baseline_sentence(rows),
        "threads": evaluation_page.threads_sentence(document),
        "limits": evaluation_page.limit_sentences(document),
        "environment": evaluation_page.environment_rows(document),
        "profile": profile_page.profile_view(document),
        "diagnostics": found,
        "diagnostics_json": as_json(found),
        "headline": _headline(evaluation, document, rows, user),
        "workload_plot": workload_plot(rows),
        "hidden_sentence": hidden_sentence(evaluation),
        "roofline": roofline(document, rows),
        "no_roofline": no_roofline(document, rows),
    }


def _headline(
    evaluation: Evaluation,
    document: dict[str, Any],
    rows: list[evaluation_page.WorkloadRow],
    user: Viewer,
) -> Headline | None:
    if not evaluation.is_correct:
        return None
    needs = evaluation.speedup_best is None and not document.get("pending_baselines")
    problem = (evaluation.task_version, evaluation.device, evaluation.direction)
    known = baselines(*problem) if needs else Baselines()
    return headline(evaluation, document, rows, rivals(evaluation, user), known)


def _queue_state(evaluation: Evaluation) -> str:
    """How the wait for a runner ended, or that it goes on, in the words of stages."""
    if evaluation.status == Status.QUEUED:
        return "running"
    never_began = evaluation.is_over and evaluation.started_at is None
    return "cancelled" if never_began else "done"

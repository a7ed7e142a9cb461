"""Everything that changes submissions, evaluations, runs and runners."""

from __future__ import annotations

from runs_app.services.audits import request_audit
from runs_app.services.calls import answer_call, test_language_model
from runs_app.services.checks import cancel_check, request_check
from runs_app.services.devices import resolve_device
from runs_app.services.dry_run import DRY_MODES, dry_run
from runs_app.services.entries import enter_candidate
from runs_app.services.errors import (
    EventError,
    NotAllowed,
    QuotaExceeded,
    SubmissionError,
    WrongState,
)
from runs_app.services.events import record_event
from runs_app.services.quarantine import decide
from runs_app.services.reconcile import reconcile
from runs_app.services.reevaluation import cancel_reevaluation, reevaluate
from runs_app.services.run_advance import advance_run
from runs_app.services.run_control import (
    changed_budget,
    extend_run,
    pause_run,
    resume_run,
    stop_run,
)
from runs_app.services.run_estimate import Estimate, estimate_run
from runs_app.services.run_history import budget_of
from runs_app.services.run_reconcile import reconcile_runs
from runs_app.services.run_replay import replay_run
from runs_app.services.run_request import RunRequest, read_run_request
from runs_app.services.run_start import start_demo_run, start_run
from runs_app.services.shipped import (
    submit_demo,
    submit_first_kernels,
    submit_offers,
    submit_shipped_kernels,
)
from runs_app.services.submission import cancel, rerun, submit
from runs_app.services.task_judging import JudgeRequest, request_judgement, settle_call

__all__ = [
    "DRY_MODES",
    "Estimate",
    "EventError",
    "JudgeRequest",
    "NotAllowed",
    "QuotaExceeded",
    "RunRequest",
    "SubmissionError",
    "WrongState",
    "advance_run",
    "answer_call",
    "budget_of",
    "cancel",
    "cancel_check",
    "cancel_reevaluation",
    "changed_budget",
    "decide",
    "dry_run",
    "enter_candidate",
    "estimate_run",
    "extend_run",
    "pause_run",
    "read_run_request",
    "reconcile",
    "reconcile_runs",
    "record_event",
    "reevaluate",
    "replay_run",
    "request_audit",
    "request_check",
    "request_judgement",
    "rerun",
    "resolve_device",
    "resume_run",
    "settle_call",
    "start_demo_run",
    "start_run",
    "stop_run",
    "submit",
    "submit_demo",
    "submit_first_kernels",
    "submit_offers",
    "submit_shipped_kernels",
    "test_language_model",
]

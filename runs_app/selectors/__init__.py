"""Questions that pages, the API and services ask about submissions, evaluations and runners."""

from __future__ import annotations

from runs_app.selectors.access import (
    author_names,
    find_evaluation,
    find_submission,
    listed_evaluations,
    may_see,
    public_reason,
    result_document,
    visible_evaluations,
    visible_submissions,
)
from runs_app.selectors.baselines import Baselines, awaited_baselines, baselines
from runs_app.selectors.checks import (
    CheckEntry,
    CheckTime,
    check_entries,
    check_reason,
    check_stage,
    check_time,
    find_check,
    may_cancel,
    may_check,
)
from runs_app.selectors.devices import devices
from runs_app.selectors.estimate import estimates
from runs_app.selectors.events import events, queue_events
from runs_app.selectors.quarantine import (
    board_audit,
    decided_cases,
    decision_reason,
    open_case_count,
    open_cases,
    public_suspicions,
)
from runs_app.selectors.queue import (
    DeviceQueue,
    QueueEntry,
    queue_overview,
    wait_of_people,
    waiting_reason,
)
from runs_app.selectors.quota import Quota, quota
from runs_app.selectors.runners import RunnerStatus, runner_list
from runs_app.selectors.runs import (
    active_s,
    budgets,
    callable_models,
    compact_events,
    filtered_runs,
    find_candidate,
    find_run,
    may_control,
    run_events,
    run_summary,
    run_waiting_reason,
    running_runs,
    visible_runs,
)
from runs_app.selectors.spending import MoneyLimits, held_usd, money_limits, paid_usd
from runs_app.selectors.standing import (
    leader,
    may_stop,
    ranked_evaluations,
    standing_evaluations,
)

__all__ = [
    "Baselines",
    "CheckEntry",
    "CheckTime",
    "DeviceQueue",
    "MoneyLimits",
    "QueueEntry",
    "Quota",
    "RunnerStatus",
    "active_s",
    "author_names",
    "awaited_baselines",
    "baselines",
    "board_audit",
    "budgets",
    "callable_models",
    "check_entries",
    "check_reason",
    "check_stage",
    "check_time",
    "compact_events",
    "decided_cases",
    "decision_reason",
    "devices",
    "estimates",
    "events",
    "filtered_runs",
    "find_candidate",
    "find_check",
    "find_evaluation",
    "find_run",
    "find_submission",
    "held_usd",
    "leader",
    "listed_evaluations",
    "may_cancel",
    "may_check",
    "may_control",
    "may_see",
    "may_stop",
    "money_limits",
    "open_case_count",
    "open_cases",
    "paid_usd",
    "public_reason",
    "public_suspicions",
    "queue_events",
    "queue_overview",
    "quota",
    "ranked_evaluations",
    "result_document",
    "run_events",
    "run_summary",
    "run_waiting_reason",
    "runner_list",
    "running_runs",
    "standing_evaluations",
    "visible_evaluations",
    "visible_runs",
    "visible_submissions",
    "wait_of_people",
    "waiting_reason",
]

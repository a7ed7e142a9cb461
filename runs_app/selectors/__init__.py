"""Questions that pages, the API and services ask about submissions, evaluations and runners."""

from __future__ import annotations

from runs_app.selectors.access import (
    author_names,
    find_evaluation,
    find_submission,
    may_see,
    public_reason,
    result_document,
    visible_evaluations,
    visible_submissions,
)
from runs_app.selectors.devices import devices
from runs_app.selectors.events import events, queue_events
from runs_app.selectors.queue import DeviceQueue, QueueEntry, queue_overview, waiting_reason
from runs_app.selectors.quota import Quota, quota
from runs_app.selectors.runners import RunnerStatus, runner_list

__all__ = [
    "DeviceQueue",
    "QueueEntry",
    "Quota",
    "RunnerStatus",
    "author_names",
    "devices",
    "events",
    "find_evaluation",
    "find_submission",
    "may_see",
    "public_reason",
    "queue_events",
    "queue_overview",
    "quota",
    "result_document",
    "runner_list",
    "visible_evaluations",
    "visible_submissions",
    "waiting_reason",
]

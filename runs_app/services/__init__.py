"""Everything that changes submissions, evaluations and runners."""

from __future__ import annotations

from runs_app.services.devices import resolve_device
from runs_app.services.errors import EventError, NotAllowed, QuotaExceeded, SubmissionError
from runs_app.services.events import record_event
from runs_app.services.reconcile import reconcile
from runs_app.services.shipped import submit_demo, submit_shipped_kernels
from runs_app.services.submission import cancel, rerun, submit

__all__ = [
    "EventError",
    "NotAllowed",
    "QuotaExceeded",
    "SubmissionError",
    "cancel",
    "reconcile",
    "record_event",
    "rerun",
    "resolve_device",
    "submit",
    "submit_demo",
    "submit_shipped_kernels",
]

"""Queues that are being emptied, on their way to the site's workers."""

from __future__ import annotations

from runs_app.core.messaging import queues

EMPTY_FUNCTION = "runs_app.features.operations.jobs.empty_queue"
_TIMEOUT_S = 300


def enqueue_emptying(emptying_id: object) -> bool:
    """Queue the next batch of an emptying; a second job does no harm.

    False if Redis could not be reached: then `take_up` queues it later.
    """
    return queues.enqueue_behind_steps(EMPTY_FUNCTION, emptying_id, timeout_s=_TIMEOUT_S)

"""Messages on their way to the site's workers."""

from __future__ import annotations

from runs_app.core.messaging import queues

DELIVER_FUNCTION = "runs_app.features.notices.jobs.deliver_message"
_TIMEOUT_S = 90


def enqueue_delivery(delivery_id: object) -> bool:
    """Queue a try to deliver a message; a second job of one try does nothing.

    False if Redis could not be reached: then `look_after` queues it later.
    """
    return queues.enqueue_beside_runs(
        "delivery", DELIVER_FUNCTION, delivery_id, timeout_s=_TIMEOUT_S
    )

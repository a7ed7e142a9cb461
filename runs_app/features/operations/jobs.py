"""The job of the site's workers that empties queues."""

from __future__ import annotations

from django.utils import timezone

from runs_app.features.operations import emptying


def empty_queue(emptying_id: str) -> None:
    """Cancel a batch of the jobs of a queue that an admin wants emptied; then comes the next."""
    if emptying.cancel_some(emptying_id=int(emptying_id), now=timezone.now()):
        emptying.enqueue_emptying(emptying_id)


JOBS = {emptying.EMPTY_FUNCTION: empty_queue}

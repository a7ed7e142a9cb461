"""The job of the site's workers that delivers messages."""

from __future__ import annotations

from django.utils import timezone

from runs_app.features.notices.delivery import deliver
from runs_app.features.notices.services import DELIVER_FUNCTION


def deliver_message(delivery_id: str) -> bool:
    """Try once to deliver a message."""
    return deliver(delivery_id=int(delivery_id), now=timezone.now())


JOBS = {DELIVER_FUNCTION: deliver_message}

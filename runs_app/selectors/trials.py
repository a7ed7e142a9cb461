"""What runners found out about a draft."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runs_app.selectors.queue import queue_overview
from tasks_app.models import Draft


def trials(draft: Draft, user: Any, now: datetime) -> dict[str, Any]:
    """What the part of the draft's page shows to `user`, to whom the draft must be open."""
    return {"draft": draft, "queues": queue_overview(user, now)}

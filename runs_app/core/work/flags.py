"""Tell admins that a runner is in doubt: each reason once, until they have looked."""

from __future__ import annotations

import logging
from datetime import datetime

from runs_app.core.text import printable
from runs_app.models import Evaluation, RunnerFlag, RunnerToken

log = logging.getLogger(__name__)

_LONGEST = 1000  # characters


def flag(
    token: RunnerToken, reason: str, *, now: datetime, evaluation: Evaluation | None = None
) -> None:
    """Put a runner in doubt, unless it is for that reason already."""
    text = printable(reason[:_LONGEST])
    log.error("runner %s is in doubt: %s", token, text)
    opened = RunnerFlag.objects.filter(token=token, cleared_at=None)
    if not opened.filter(reason=text).exists() and opened.count() < MOST:
        RunnerFlag.objects.create(token=token, reason=text, evaluation=evaluation, at=now)


MOST = 20
"""Open reasons of one runner; what comes beyond them is in the log alone."""

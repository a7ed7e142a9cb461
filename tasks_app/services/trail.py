"""The trail of what curators did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from tasks_app.models import Act, Draft, Task, TaskVersion


def note(  # noqa: PLR0913 - keywords only: one for each thing that an act is about
    kind: Act.Kind,
    *,
    now: datetime,
    actor: User | None = None,
    task: Task | None = None,
    version: TaskVersion | None = None,
    draft: Draft | None = None,
    reason: str = "",
    details: Mapping[str, Any] | None = None,
) -> Act:
    """Add an act to the trail; call it in the transaction that does what it tells of.

    The task is that of the version or the draft where it is left out. Without an actor it was a
    command on the site's machine.
    """
    about = task or (version.task if version else None) or (draft.task if draft else None)
    return Act.objects.create(
        kind=kind,
        name=about.slug if about else (draft.name if draft else ""),
        actor=actor,
        task=about,
        version=version,
        draft=draft,
        reason=reason,
        details=dict(details or {}),
        created_at=now,
    )

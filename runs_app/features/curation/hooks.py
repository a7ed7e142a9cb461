"""Where curation joins in: links to its pages, a draft's checks, and accounts that close."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.dispatch import receiver
from django.template.context import Context
from django.utils import timezone

from runs_app.core.hooks import Filling, Slot, fills
from runs_app.features.curation.checks.page import findings_part
from runs_app.features.curation.drafts.services import close_draft
from tasks_app.models import Draft, Task
from tasks_app.people import account_closing
from tasks_app.selectors import tasks_in_review


@fills(Slot.NAVIGATION)
def _link(context: Context) -> Filling:
    """Leads to all tasks."""
    return Filling("curation/parts/link.html", {"request": context.get("request")})


@fills(Slot.TASKS)
def _of_tasks(context: Context, place: str) -> Filling | None:
    """Lets people propose a task, and tells admins what waits for a decision."""
    if place == "head":
        return Filling("curation/parts/propose.html", {})
    count = tasks_in_review(context["user"]).count()
    return Filling("curation/parts/in_review.html", {"count": count}) if count else None


@fills(Slot.CURATED)
def _of_task(context: Context, task: Task, place: str) -> Filling | None:
    """Leads from a task's pages to the one on which admins decide about it."""
    return Filling("curation/parts/curate.html", {"task": task}) if place == "head" else None


@fills(Slot.DRAFT)
def _of_draft(context: Context, draft: Draft) -> Filling:
    """Forms that have a draft checked and its kernels tried, and what came of it."""
    part = findings_part(draft, context["user"], timezone.now())
    return Filling("curation/checks/parts/findings.html", vars(part))


@receiver(account_closing)
def _close_drafts(sender: Any, user: User, now: datetime, **_: Any) -> None:
    """Close what its author was writing."""
    reason = "its author deleted their account"
    for draft in Draft.objects.filter(author=user, state__in=Draft.UNDER_WAY):
        close_draft(draft=draft, user=user, reason=reason, now=now)

"""The count of unread notices in the header, and the button that watches something."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import Context
from django.urls import reverse

from runs_app.models import Device, Notice, Run, Watch
from runs_app.notices.services import watch_key
from tasks_app.models import Task
from tasks_app.people import Viewer
from tasks_app.selectors import find_task

register = template.Library()

_MOST = 100


@register.inclusion_tag("runs_app/notices/parts/unread.html")
def unread_notices(user: Viewer) -> dict[str, Any]:
    """How many notices `user` has not read; more than 99 are said as 99+."""
    count = Notice.objects.filter(user__pk=user.pk or 0, read_at=None)[:_MOST].count()
    return {"count": count, "words": "99+" if count == _MOST else str(count)}


@register.inclusion_tag("runs_app/notices/parts/watch.html", takes_context=True)
def watch_button(
    context: Context,
    task: Task | None = None,
    device: Device | None = None,
    run: Run | None = None,
    slug: str = "",
) -> dict[str, Any]:
    """Watch a task, a board or a run, or no longer. `slug` names a board's task."""
    request = context["request"]
    task = task or (find_task(slug) if slug else None)
    key = watch_key(task=task, device=device, run=run)
    user = request.user
    watched = user.is_authenticated and Watch.objects.filter(user=user, key=key).exists()
    what = "run" if run else "board" if device else "task"
    return {
        "csrf_token": context.get("csrf_token"),
        "user": user,
        "watched": watched,
        "what": what,
        "task": task,
        "device": device,
        "run": run,
        "next": request.get_full_path(),
        "feed": feed_address(task=task, device=device, run=run),
    }


def feed_address(
    *, task: Task | None = None, device: Device | None = None, run: Run | None = None
) -> str:
    """Where the Atom feed of something is."""
    if run is not None:
        return reverse("run-feed", args=[run.pk])
    if device is not None:
        path = reverse("board-feed", args=[device.pk])
        return f"{path}?task={task.slug}" if task else path
    return reverse("task-feed", args=[task.slug]) if task else ""

"""Have many tasks checked at once."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_POST

from runs_app.core.checks.services import request_check
from runs_app.core.forms import refusals
from runs_app.core.queue.many import back, selected, tell_of
from runs_app.models import Device, TaskCheck
from tasks_app import selectors
from tasks_app.disclosure import admin_of
from tasks_app.errors import CurationError
from tasks_app.models import Task
from tasks_app.pages.audit_words import counted
from tasks_app.people import AuthenticatedRequest


@login_required
@require_POST
def tasks_check(request: AuthenticatedRequest) -> HttpResponse:
    """Queue a check of each selected task on a device: of the version that its row speaks of."""
    user = admin_of(request, "only admins can check many tasks")
    with refusals(request, "No check"):
        tasks, device = selected(request)
        checks, refused = _check(tasks, device, user)
        text = f"{counted(len(checks), 'check')} on {device.name} under way."
        tell_of(request, text, refused, done=bool(checks))
    return back(request)


def _check(
    tasks: Sequence[Task], device: Device, user: User
) -> tuple[list[TaskCheck], dict[str, str]]:
    """The checks that are under way now, and why other tasks have none, by name."""
    checks: list[TaskCheck] = []
    refusals: dict[str, str] = {}
    new = selectors.drafts_of_new(tasks)
    for task in tasks:
        version = new[task.pk].version if task.pk in new else task.current_version
        if version is None:
            refusals[task.slug] = "has no version to check"
            continue
        try:
            checks.append(
                request_check(version=version, device=device, user=user, now=timezone.now())
            )
        except CurationError as error:
            refusals[task.slug] = error.reason
    return checks, refusals

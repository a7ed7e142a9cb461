"""Have many tasks checked at once."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from runs_app import services
from runs_app.models import Device, TaskCheck
from tasks_app import curate_page
from tasks_app.disclosure import admin_of
from tasks_app.models import Task
from tasks_app.services import CurationError

_NAMED = 5  # refusals that a message tells


@login_required
@require_POST
def tasks_check(request: HttpRequest) -> HttpResponse:
    """Queue a check of the current version of each selected task on a device."""
    user = admin_of(request, "only admins have many tasks checked")
    slugs = [slug for slug in request.POST.getlist("task") if "\0" not in slug]
    tasks = Task.objects.filter(slug__in=slugs).select_related("current_version").order_by("slug")
    wanted = request.POST.get("device", "").replace("\0", "")
    device = Device.objects.filter(slug=wanted).first()
    if device is None:
        messages.error(request, "No check: choose a device.", extra_tags="bad")
    elif not tasks:
        messages.error(request, "No check: select at least one task.", extra_tags="bad")
    else:
        _tell(request, device, *_check(tasks, device, user))
    asked = QueryDict(request.POST.get("filters"))
    filters = curate_page.read_filters(asked, curate_page.FILTERS)
    return redirect(f"{reverse('curate')}?{curate_page.address(filters)}")


def _check(
    tasks: Iterable[Task], device: Device, user: User
) -> tuple[list[TaskCheck], dict[str, str]]:
    """The checks that are under way now, and why other tasks have none, by name."""
    checks: list[TaskCheck] = []
    refusals: dict[str, str] = {}
    for task in tasks:
        if task.current_version is None:
            refusals[task.slug] = "has no version to check"
            continue
        try:
            checks.append(
                services.request_check(
                    version=task.current_version, device=device, user=user, now=timezone.now()
                )
            )
        except CurationError as error:
            refusals[task.slug] = error.reason
    return checks, refusals


def _tell(
    request: HttpRequest, device: Device, checks: list[TaskCheck], refusals: dict[str, str]
) -> None:
    text = f"{len(checks)} check{'' if len(checks) == 1 else 's'} on {device.name} under way."
    if refusals:
        told = [f"{name}: {reason}" for name, reason in refusals.items()]
        more = "; and others" if len(told) > _NAMED else ""
        text += f" Not for {len(told)}: {'; '.join(told[:_NAMED])}{more}."
    tell = messages.success if checks else messages.warning
    tell(request, text, extra_tags="good" if checks else "warn")

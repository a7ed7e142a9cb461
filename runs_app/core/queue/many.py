"""Forms by which admins start something for many tasks on a device, and the message afterwards.

A form has any number of fields `task`, a `device`, and `back`, the address of its page.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from runs_app.core.queue.devices import devices
from runs_app.models import Device
from tasks_app.errors import CurationError
from tasks_app.models import Task

_NAMED = 5  # refusals that a message lists


def selected(request: HttpRequest) -> tuple[list[Task], Device]:
    """The tasks and the device that the form names."""
    wanted = request.POST.get("device", "")
    device = devices().filter(slug=wanted).first()
    if device is None:
        raise CurationError("device", "choose a device")
    slugs = request.POST.getlist("task")
    tasks = Task.objects.filter(slug__in=slugs).select_related("current_version").order_by("slug")
    if not tasks:
        raise CurationError("task", "select at least one task")
    return list(tasks), device


def back(request: HttpRequest) -> HttpResponse:
    """Redirect to the page that the form was on."""
    return redirect(back_address(request))


def back_address(request: HttpRequest) -> str:
    """The page that the form was on; the list of tasks if the address is of another site."""
    asked = request.POST.get("back", "")
    is_ours = url_has_allowed_host_and_scheme(asked, {request.get_host()})
    return asked if is_ours else reverse("tasks")


def tell_of(request: HttpRequest, text: str, refusals: dict[str, str], *, done: bool) -> None:
    """Tell what was started, and which tasks were left out and why."""
    if refusals:
        told = [f"{name}: {reason}" for name, reason in refusals.items()]
        more = "; and more" if len(told) > _NAMED else ""
        text += f" Left out {len(told)}: {'; '.join(told[:_NAMED])}{more}."
    tell = messages.success if done else messages.warning
    tell(request, text)

"""Says on pages of tasks which soundness checks are waiting or under way."""

from __future__ import annotations

from django import template
from django.template.context import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from runs_app.models import UNDER_WAY, Status, TaskCheck

register = template.Library()

_KEY = "checks under way"


@register.simple_tag(takes_context=True)
def checks_under_way(context: Context, version_id: int | None) -> SafeString:
    """A line with a version's checks that have not ended, each with its device; else nothing.

    One query for all calls of a template.
    """
    known: dict[int, list[tuple[str, str]]] | None = context.render_context.get(_KEY)
    if known is None:
        known = context.render_context[_KEY] = _all()
    checks = known.get(version_id or 0, [])
    if not checks:
        return SafeString("")
    devices = format_html_join(", ", "{} on {}", checks)
    words = '<span class="sub"><a href="{}">A check</a> {}</span>'
    return format_html(words, reverse("queue"), devices)


def _all() -> dict[int, list[tuple[str, str]]]:
    rows = TaskCheck.objects.filter(status__in=UNDER_WAY).order_by("created_at", "pk")
    found: dict[int, list[tuple[str, str]]] = {}
    for version, status, device in rows.values_list("version_id", "status", "device_id"):
        words = "waits" if status == Status.QUEUED else "runs"
        found.setdefault(version, []).append((words, device))
    return found

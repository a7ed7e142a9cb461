"""Says on pages of tasks which soundness checks are waiting or under way."""

from __future__ import annotations

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from runs_app.core.checks.selectors import UnderWay

register = template.Library()


@register.simple_tag
def checks_line(known: UnderWay, version_id: int | None) -> SafeString:
    """A line with a version's checks, each with what it does and its device; else nothing."""
    checks = known.get(version_id or 0)
    if not checks:
        return SafeString("")
    devices = format_html_join(", ", "{} on {}", checks)
    words = '<span class="sub"><a href="{}">A check</a> {}</span>'
    return format_html(words, reverse("queue"), devices)

"""Says on pages of tasks which soundness checks are waiting or under way."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def checks_line(checks: Sequence[tuple[str, str]]) -> SafeString:
    """A line with checks, each with what it does and its device; nothing without any."""
    if not checks:
        return SafeString("")
    devices = format_html_join(", ", "{} on {}", checks)
    words = '<span class="sub"><a href="{}">A check</a> {}</span>'
    return format_html(words, reverse("queue"), devices)

"""Says on pages of tasks which soundness checks are waiting or under way."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def checks_line(known: Mapping[int, str], version_id: int | None) -> SafeString:
    """A line with what each of a version's checks does or waits for; else nothing."""
    does = known.get(version_id or 0)
    if not does:
        return SafeString("")
    words = '<span class="sub"><a href="{}">A check</a> {}.</span>'
    return format_html(words, reverse("queue"), does)

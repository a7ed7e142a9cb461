"""Says on pages of tasks which soundness checks are waiting, under way or failed."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()
_NOTHING = SafeString("")


@register.simple_tag
def checks_line(
    known: Mapping[int, str], version_id: int | None, failed: Mapping[int, str] | None = None
) -> SafeString:
    """A line with what each of a version's checks does or waits for, or why the last one failed."""
    does = known.get(version_id or 0)
    if not does:
        why = (failed or {}).get(version_id or 0)
        return format_html('<span class="sub">The last check {}</span>', why) if why else _NOTHING
    words = '<span class="sub"><a href="{}">A check</a> {}.</span>'
    return format_html(words, reverse("queue"), does)

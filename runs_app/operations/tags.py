"""What stands above every page while it is in force."""

from __future__ import annotations

from typing import Any

from django import template
from django.db import DatabaseError
from django.utils import timezone

from runs_app.work.stops import in_force

register = template.Library()

_MOST = 5


@register.inclusion_tag("runs_app/operations/parts/banners.html")
def site_banners() -> dict[str, Any]:
    """The announcements in force; none where the database says nothing."""
    try:
        return {"announcements": list(in_force(timezone.now())[:_MOST])}
    except DatabaseError:  # a page of errors must not fail for it
        return {"announcements": []}

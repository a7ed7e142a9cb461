"""Words of the trail."""

from __future__ import annotations

from django import template

from tasks_app.services.trail import details_text

register = template.Library()
register.filter("details_text", details_text)

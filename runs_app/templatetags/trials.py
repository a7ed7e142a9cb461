"""What runners found out about a draft: the part of its page that asks them and shows it."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import Context
from django.utils import timezone

from runs_app.selectors.trials import trials
from tasks_app.models import Draft

register = template.Library()


@register.inclusion_tag("runs_app/parts/trials.html", takes_context=True)
def draft_trials(context: Context, draft: Draft) -> dict[str, Any]:
    """Forms that have a draft checked and its kernels tried, and what came of it."""
    return trials(draft, context.get("user"), timezone.now())

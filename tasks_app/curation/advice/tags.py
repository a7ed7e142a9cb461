"""What language models say of a task, and the form with which an admin asks one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.template.context import Context
from django.urls import reverse
from django.utils import timezone

from runs_app.advice.selectors import judgements_of
from runs_app.advice.services import JudgeRequest
from runs_app.optimisation.selectors.runs import callable_models
from tasks_app.curation.checks.selectors import versions_of
from tasks_app.curation.checks.tags import may_ask
from tasks_app.disclosure import sees_hidden
from tasks_app.models import Draft, TaskVersion
from tasks_app.people import Viewer

register = template.Library()


@register.inclusion_tag("tasks_app/curation/advice/parts/judgements.html", takes_context=True)
def version_judgements(context: Context, version: TaskVersion) -> dict[str, Any]:
    """What language models said of a version that the template's `user` may see."""
    return judgements_context(version, context["user"])


@register.inclusion_tag("tasks_app/curation/advice/parts/judgements.html", takes_context=True)
def draft_judgements(context: Context, draft: Draft) -> dict[str, Any]:
    """What they said of a draft that is open to the template's `user`."""
    return judgements_context(draft, context["user"])


def judgements_context(
    about: TaskVersion | Draft, user: Viewer, asked: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """All of that part; `asked` is what a form held that was refused, or is repeated."""
    fields = asked or {}
    may = sees_hidden(user) and (isinstance(about, TaskVersion) or may_ask(about, user))
    return rows_context(about) | {
        "may_ask": may,
        "models": list(callable_models()) if may else [],
        "model": fields.get("model", ""),
        "max_usd": fields.get("max_usd", f"{JudgeRequest(model='').max_usd:g}"),
    }


def rows_context(about: TaskVersion | Draft) -> dict[str, Any]:
    """The part of it that changes while a language model is being asked."""
    if isinstance(about, Draft):
        address = reverse("draft-judgements", args=[about.pk])
        versions, present = versions_of(about), about.version_id
    else:
        address = reverse("version-judgements", args=[about.task.slug, about.number])
        versions, present = [about.pk], about.pk
    return {
        "judgements": judgements_of(versions, timezone.now()),
        "present": present,
        "is_draft": isinstance(about, Draft),
        "address": address,
    }

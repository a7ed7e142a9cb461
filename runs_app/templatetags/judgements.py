"""What language models say of a task."""

from __future__ import annotations

from typing import Any

from django import template

from runs_app.models import TaskJudgement
from tasks_app.models import TaskVersion

register = template.Library()

_SHOWN = 20


@register.inclusion_tag("runs_app/parts/task_judgements.html")
def task_judgements(version: TaskVersion) -> dict[str, Any]:
    """The newest judgements of a version, with what they cost."""
    rows = TaskJudgement.objects.filter(version=version).select_related("call__language_model")
    command = f".venv/bin/python manage.py judge_task {version.task.slug} --model NAME"
    return {"judgements": rows[:_SHOWN], "command": command}

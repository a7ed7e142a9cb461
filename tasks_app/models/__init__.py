"""Tasks, their immutable versions, what proves them sound, and how they are curated."""

from __future__ import annotations

from tasks_app.models.curation import Act, Draft
from tasks_app.models.soundness import Override, Soundness
from tasks_app.models.task import Task, TaskVersion

__all__ = ["Act", "Draft", "Override", "Soundness", "Task", "TaskVersion"]

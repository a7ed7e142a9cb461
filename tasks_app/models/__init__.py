"""Tasks, their immutable versions, their soundness, and how they are curated."""

from __future__ import annotations

from tasks_app.models.curation import AuditEntry, Draft
from tasks_app.models.soundness import Override, Soundness
from tasks_app.models.task import Task, TaskVersion

__all__ = ["AuditEntry", "Draft", "Override", "Soundness", "Task", "TaskVersion"]

"""Tasks and their versions."""

from __future__ import annotations

from django.apps import AppConfig


class TasksAppConfig(AppConfig):
    """Registers tasks and their versions."""

    name = "tasks_app"
    verbose_name = "Tasks"
    default_auto_field = "django.db.models.BigAutoField"

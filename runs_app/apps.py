"""Submissions, their evaluations, and the runners that evaluate them."""

from __future__ import annotations

from django.apps import AppConfig


class RunsAppConfig(AppConfig):
    """Registers submissions, evaluations and runners."""

    name = "runs_app"
    verbose_name = "Submissions and evaluations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have notices follow what happens."""
        from runs_app.notices import happenings

        assert happenings, "its receivers are connected by its import"

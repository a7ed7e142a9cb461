"""Submissions, their evaluations, and the runners that evaluate them."""

from __future__ import annotations

from django.apps import AppConfig


class RunsAppConfig(AppConfig):
    """Registers submissions, evaluations and runners."""

    name = "runs_app"
    verbose_name = "Submissions and evaluations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have shipped kernels follow new devices, and let features join in."""
        from runs_app.core import features
        from runs_app.submitting import shipped

        assert shipped, "importing it connects its receiver"
        features.modules("hooks")

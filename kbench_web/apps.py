"""The site itself: settings, routing, and the tokens of its API."""

from __future__ import annotations

from django.apps import AppConfig


class KbenchWebConfig(AppConfig):
    """Registers the API's tokens."""

    name = "kbench_web"
    verbose_name = "API"
    default_auto_field = "django.db.models.BigAutoField"

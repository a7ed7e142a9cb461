"""Challenges and entries in the admin."""

from __future__ import annotations

from django.contrib import admin

from runs_app.core.work.read_only_admin import ReadOnlyAdmin
from runs_app.features.challenges import models


@admin.register(models.Challenge)
class ChallengeAdmin(ReadOnlyAdmin):
    """Read a challenge, or take it away with its entries; its own page makes and ends them."""

    list_display = ("name", "device", "starts_at", "ends_at", "closed_at", "made_by")
    list_select_related = ("device", "made_by")
    search_fields = ("name",)


@admin.register(models.Entry)
class EntryAdmin(ReadOnlyAdmin):
    """Read an entry to a challenge."""

    list_display = ("__str__", "challenge", "user", "state", "started_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("challenge", "agent", "user")
    search_fields = ("id", "agent__name", "challenge__name")
    exclude = ("digest",)

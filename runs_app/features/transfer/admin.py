"""Imported files in the admin."""

from __future__ import annotations

from django.contrib import admin

from runs_app.core.work.read_only_admin import ReadOnlyAdmin
from runs_app.features.transfer import models


@admin.register(models.ResultImport)
class ResultImportAdmin(ReadOnlyAdmin):
    """Read what was imported, or take all that a file brought off the boards."""

    list_display = ("site", "results", "exported_at", "imported_at", "note")

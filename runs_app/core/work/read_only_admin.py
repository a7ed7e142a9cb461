"""Tables in the admin that are read there, and written by services alone."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that only services write; of many tables too many to count all beside those found."""

    show_full_result_count = False
    beside: tuple[str, ...] = ()
    """What a list reads by queries of its own: joined, SQLite sorts a million rows to show 100."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).prefetch_related(*self.beside)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

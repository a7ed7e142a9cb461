"""Devices that kernels can be sent to."""

from __future__ import annotations

from django.db.models import QuerySet

from runs_app.models import Device


def devices() -> QuerySet[Device]:
    """All devices that runners of this site have or had, by slug."""
    return Device.objects.filter(imported_from="").order_by("slug")

"""Devices that kernels can be sent to."""

from __future__ import annotations

from django.db.models import QuerySet

from runs_app.models import Device


def devices() -> QuerySet[Device]:
    """All known devices, by slug."""
    return Device.objects.order_by("slug")

"""What curators choose from when they have many tasks checked."""

from __future__ import annotations

from django import template

from runs_app.models import Device

register = template.Library()


@register.simple_tag
def check_devices() -> list[Device]:
    """Devices on which tasks can be checked."""
    return list(Device.objects.order_by("slug"))

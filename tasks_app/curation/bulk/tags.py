"""What curators choose from when they have many tasks checked."""

from __future__ import annotations

from django import template

from runs_app.models import Device
from runs_app.queue.devices import devices

register = template.Library()


@register.simple_tag
def check_devices() -> list[Device]:
    """Devices on which tasks can be checked."""
    return list(devices())

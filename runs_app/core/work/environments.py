"""What the newest result of a device says of its host, whatever task it is of."""

from __future__ import annotations

from dataclasses import replace

from django.core.cache import cache

from gpu_runner.data.codec import decode_stored
from gpu_runner.data.environment import Environment
from gpu_runner.data.verdict import DeviceKind, Verdict
from runs_app.core.profile import hardware
from runs_app.models import Device, Result

_KEPT_S = 600  # chosen: a host is rarely changed


def newest_environment(device: Device) -> Environment:
    """Of the newest correct result, of a guest's runner only if there is no other.

    Its rates are of that task's dtype, so they are left out.
    """
    rows = Result.objects.filter(
        evaluation__device=device, evaluation__verdict=Verdict.CORRECT.value
    ).order_by("evaluation__guest", "-evaluation__finished_at")
    found = rows.values_list("document__environment", flat=True).first() or {}
    return replace(decode_stored(Environment, found), peaks=None)


def cpu_in_short(device: Device) -> str:
    """What a CPU gives a kernel, in a sentence; empty of a GPU. Kept for minutes."""
    if device.kind != DeviceKind.CPU:
        return ""
    key = f"cpu-in-short:{device.slug}"
    kept: str = cache.get(key) or ""
    if not kept and (kept := hardware.cpu_in_short(newest_environment(device))):
        cache.set(key, kept, timeout=_KEPT_S)
    return kept


def device_facts(device: Device) -> list[str]:
    """What is known of a device, a fact a line; none before its first result. Kept for minutes."""
    key = f"device-facts:{device.slug}"
    kept: list[str] = cache.get(key) or []
    if not kept and (kept := list(hardware.hardware_lines(newest_environment(device)))):
        cache.set(key, kept, timeout=_KEPT_S)
    return kept

"""What the newest result of a device or a runner says of its host, whatever task it is of."""

from __future__ import annotations

from dataclasses import replace

from django.core.cache import cache

from gpu_runner.data.codec import decode_stored
from gpu_runner.data.environment import Environment, Peaks
from gpu_runner.data.verdict import DeviceKind, Verdict
from runs_app.core.profile import hardware
from runs_app.models import Device, Evaluation, Result

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


def with_peaks(environment: Environment, evaluation: Evaluation) -> Environment:
    """Add the measured peak if its runner's was only measured later, for the same dtype."""
    known = environment.peaks or Peaks()
    if known.measured or known.theoretical or evaluation.runner_id is None:
        return environment
    rows = Result.objects.filter(
        evaluation__device=evaluation.device_id,
        evaluation__runner=evaluation.runner_id,
        evaluation__task_version__dtype=evaluation.task_version.dtype,
        evaluation__verdict=Verdict.CORRECT.value,
    ).order_by("-evaluation__created_at")
    found = rows.values_list("document__environment__peaks", flat=True).first() or {}
    measured = decode_stored(Peaks, found).measured
    if measured is None:
        return environment
    return replace(environment, peaks=replace(known, measured=replace(measured, fraction=None)))


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

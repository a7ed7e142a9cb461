"""Devices that kernels can be sent to, and the one that a request means."""

from __future__ import annotations

from django.db.models import QuerySet

from gpu_runner.data.static import gpu_reason, usual_kind
from gpu_runner.data.verdict import DeviceKind, Language
from runs_app.core.errors import SubmissionError
from runs_app.models import Device

_CUDA = DeviceKind.CUDA.value


def devices() -> QuerySet[Device]:
    """All devices that runners of this site have or had, by slug."""
    return Device.objects.filter(imported_from="").order_by("slug")


def resolve_device(name: str, language: str = "", source: str = "") -> Device:
    """The device called `name`; "cuda" means the only CUDA device.

    An empty name means "cuda" for a source in CUDA, and for a Python module that needs a GPU, else
    the CPU. Raises `SubmissionError`.
    """
    known = list(devices())
    if not name:
        name = usual_kind(_language(language), source).value
        why = gpu_reason(source) if language == Language.PYTHON else ""
        if why and all(device.kind != _CUDA for device in known):
            reason = (
                f"the module is for a GPU: it {why}. No runner with a CUDA device has reported."
            )
            raise SubmissionError("device", f"{reason} To run it anyway, choose a device")
    for device in known:
        if device.slug == name:
            return device
    have = ", ".join(device.slug for device in known)
    if name != _CUDA:
        raise SubmissionError("device", f"there is no device {name!r}; known devices: {have}")
    found = [device for device in known if device.kind == _CUDA]
    if not found:
        raise SubmissionError(
            "device", f"no runner with a CUDA device has ever reported; known devices: {have}"
        )
    if len(found) > 1:
        raise SubmissionError("device", f"there are several CUDA devices; choose one of: {have}")
    return found[0]


def _language(name: str) -> Language:
    """The language of that name; one that there is not is refused later, by its field."""
    return next((language for language in Language if language == name), Language.CPP)

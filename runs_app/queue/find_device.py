"""Find the device that a request means."""

from __future__ import annotations

from gpu_runner.data.verdict import DeviceKind, Language
from runs_app.errors import SubmissionError
from runs_app.models import Device
from runs_app.queue.devices import devices

_CUDA = DeviceKind.CUDA.value


def resolve_device(name: str, language: str = "") -> Device:
    """The device called `name`; "cuda" means the only CUDA device.

    An empty name means the CPU, or "cuda" where `language` is CUDA. Raises `SubmissionError`.
    """
    name = name or (_CUDA if language == Language.CUDA.value else DeviceKind.CPU.value)
    known = list(devices())
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
        raise SubmissionError("device", f"there are several CUDA devices; name one of: {have}")
    return found[0]

"""The driver's library is started once a process, also after a fork."""

from __future__ import annotations

import os

import pytest

from gpu_runner.supervisor.host import nvml


def test_a_forked_process_starts_the_library_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Utilities:
        def __init__(self) -> None:
            started.append(os.getpid())

    monkeypatch.setattr(nvml, "_Utilities", Utilities)
    nvml._of_process.cache_clear()
    try:
        assert nvml._nvml() is nvml._nvml()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        nvml._nvml()
        assert len(started) == 2
    finally:
        nvml._of_process.cache_clear()

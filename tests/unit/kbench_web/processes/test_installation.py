"""Which programs an installation has, with and without runners of its own."""

from __future__ import annotations

import pytest

from kbench_web.processes import installation


def test_a_site_that_measures_nothing_has_no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "cuda_devices", lambda: [0, 1])
    names = [each.name for each in installation.programs("127.0.0.1", 8000, call_workers=1)]
    assert names == ["web", "ingest", "boards", "runs", "calls"]
    assert [each.name for each in installation.runners()] == ["cpu", "cuda-0", "cuda-1"]

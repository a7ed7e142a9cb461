"""The doctor measures a device's peaks in the jail, and remembers them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_runner.__main__ import main
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools.calibrate import calibrated

needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")


@needs_jail
def test_a_cpu_is_measured_below_its_limits_and_remembered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "facts.json"
    command = ["doctor", "--calibrate", "--device", "cpu", "--cache", str(tmp_path)]
    assert main([*command, "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    for words in ("memory, read", "memory, copy", "float32", "float64", "limits:"):
        assert words in printed
    (facts,) = json.loads(out.read_text())
    limit, measured = facts["limit"], facts["measured"]
    assert 1e8 < measured["bytes_per_s"]["read"] <= limit["bytes_per_s"]
    for dtype, rate in measured["flop_per_s"].items():
        assert 0 < rate <= limit["flop_per_s"][dtype]
    found = calibrated(SupervisorConfig(cache_folder=tmp_path))
    assert found is not None
    assert dict(found.bytes_per_s) == measured["bytes_per_s"]
    assert main(["doctor", "--cache", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "measured for: cpu" in printed
    for name in ("jail", "g++", "torch", "headers", "cpu", "nvcc", "gpu", "ncu"):
        assert f" {name}" in printed

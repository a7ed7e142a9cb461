"""A host without room for more is not an author's fault, and another attempt may find some."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.formats import find_task
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import DeviceKind, Language, Mode, Verdict
from gpu_runner.supervisor import evaluate as protocol
from gpu_runner.supervisor.build.build import build
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device.toolchain import ToolchainError
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import write_atomically
from gpu_runner.supervisor.host.killed import KilledFromOutside, shortage
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.runner.faults import RunnerUnfit

FULL = OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_keeps_no_parts_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise FULL

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(tmp_path / "builds" / "library.so", b"x" * 1000)
    assert list((tmp_path / "builds").iterdir()) == []
    assert "run out of disk space" in shortage(caught.value)
    assert str(tmp_path / "builds") in str(caught.value)  # for the log: only admins see it


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
def test_what_a_compiler_writes_needs_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a source would fail, its author be told so, where the host's disk is full."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    recipe = Recipe({"a.cpp": "int x;"}, "a.cpp", DeviceKind.CPU, ("-shared", "-fPIC"))
    assert build(recipe, SupervisorConfig(cache_folder=tmp_path)).library is not None


@pytest.mark.parametrize(
    ("error", "is_retryable"),
    [
        (KilledFromOutside("the compiler was killed"), True),
        (RunnerUnfit("the device was reset"), True),
        (ToolchainError("cannot build support.cpp: g++ failed"), True),
        (jail.JailError("this host has too little memory left"), True),
        (OSError(errno.ENOSPC, "No space left on device", "/cache/builds"), True),
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), True),
        (MemoryError(), True),
        (OSError(errno.ENOENT, "No such file or directory"), False),
        (OracleError("the task's code failed"), False),
        (ValueError("a defect"), False),
    ],
)
def test_a_result_says_whether_another_attempt_may_go_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, is_retryable: bool
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(protocol, "build_solution", fail)
    solution = Solution(source="int x;", language=Language.CPP)
    request = EvaluationRequest(
        evaluation_id="e1",
        task=find_task("vector_add"),
        solution=solution,
        mode=Mode.COMPILE,
        device="cpu",
    )
    config = SupervisorConfig(cache_folder=tmp_path, allow_unjailed=True)
    result = protocol.evaluate(request, config)
    assert result.verdict is Verdict.SYSTEM_ERROR
    assert result.retryable is is_retryable
    lost = isinstance(error, ToolchainError)  # nobody comes next before somebody has looked
    assert (tmp_path / "health" / "cpu-0-mark.json").exists() is lost

"""Kernels in Python from the command line: where they go, and what they need there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from runs_app.models import Submission
from tests import factories as make
from tests.unit.kbench_client.conftest import Run as Command

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]


def test_a_package_that_no_runner_has_is_said_before_anything_is_queued(
    kbench: Command, ada: Any, home: Path
) -> None:
    make.make_task_version()
    make.make_runner(packages={"numba": ""})
    (home / "k.py").write_text("# kbench: task=scale\nimport numba\ndef forward(x, N): return x\n")
    ran = kbench("submit", str(home / "k.py"), "--json")
    assert (ran.status, ran.document["error"]["field"]) == (2, "source")
    assert "(pip install numba)" in ran.document["error"]["reason"]
    assert not Submission.objects.exists()
    make.make_device()  # a module for a GPU needs no device named
    (home / "k.py").write_text("# kbench: task=scale\nimport triton\ndef forward(x, N): return x\n")
    assert kbench("submit", str(home / "k.py")).status == 0
    assert Submission.objects.get().evaluations.get().device_id == "nvidia-h200"


def test_evaluate_leaves_the_device_of_a_module_to_gpu_runner(
    kbench: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run(words: list[str], **_: Any) -> Any:
        asked.append(words)
        return subprocess.CompletedProcess(words, 2, "", "gpu_runner: no")

    monkeypatch.setattr("kbench_client.commands.evaluate.missing", lambda: [])
    monkeypatch.setattr("kbench_client.commands.evaluate.subprocess.run", run)
    (home / "k.py").write_text("import triton\n")
    for more in ([], ["--device", "cpu"]):
        kbench("evaluate", str(home / "k.py"), "--folder", str(home), *more)
    (home / "k.cpp").write_text("int x;")
    kbench("evaluate", str(home / "k.cpp"), "--folder", str(home))
    given = [words[words.index("--device") + 1] if "--device" in words else "" for words in asked]
    assert given == ["", "cpu", "cpu"]

"""Extensions: the texts that are sent are the module's own, wherever Python is installed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from gpu_runner.engine.runner.extensions import _extension


def test_only_a_modules_own_folders_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "checkout/.venv"))
    installed, own = tmp_path / "checkout/.venv/include", tmp_path / "build"
    for folder in (installed, own):
        folder.mkdir(parents=True)
        (folder / "some.h").write_text("// text")
    (own / "main.cpp").write_text("// source")
    asked = _extension(
        {
            "sources": [str(own / "main.cpp")],
            "cflags": [f"-isystem {shlex.quote(str(installed))}"],
            "cuda_cflags": None,
            "ldflags": [],
            "library_target": "main.so",
        },
        str(own),
    )
    assert set(asked.files) == {"folder0/main.cpp", "folder0/some.h"}
    assert asked.flags == ("-isystem", str(installed))

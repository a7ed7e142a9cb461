"""A gate compares with what Git has of another commit, and says what fails."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kbench_client.exits import Exit
from kbench_client.main import main
from kbench_client.output import Output

NOW, BEFORE = {"verdict": "CORRECT", "reason": "", "time_ns": 2000.0}, "kernel, old"


def git(folder: Path, *words: str) -> None:
    person = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", "-C", folder, *person, *words], check=True, capture_output=True)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "mine.py").write_text("old")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "old")
    (tmp_path / "mine.py").write_text("new")
    return tmp_path / "mine.py"


def gate(
    monkeypatch: pytest.MonkeyPatch, paths: Sequence[Path], *words: str, **kernel: Any
) -> tuple[int, list[str]]:
    """The exit status, and the texts of the old scripts, and of their headers."""
    seen: list[str] = []

    def checked(words: Sequence[str], output: Output) -> tuple[dict[str, Any], str, int]:
        ratios: dict[str, Any] = {}
        kernels = {"kernel": {**NOW, **{k: v for k, v in kernel.items() if k in NOW}}}
        if "--compare" in words:
            old = Path(words[list(words).index("--compare") + 1])
            seen.extend(each.read_text() for each in (old, *old.parent.rglob("*.h")))
            kernels[BEFORE] = {**NOW, "time_ns": 1000.0}
            ratios = {"kernel": {"value": 0.5, "low": 0.4, "high": kernel.get("high", 0.6)}}
        return {"kernels": kernels, "ratios": ratios}, "", 0

    monkeypatch.setattr("kbench_client.commands.local.checked", checked)
    monkeypatch.setattr("kbench_client.commands.local.require_runner", lambda site: None)
    return main(["gate", *map(str, paths), "--base", "HEAD", *words]), seen


def test_a_slower_kernel_fails(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, seen = gate(monkeypatch, [script])
    assert (status, seen) == (Exit.OTHER_VERDICT, ["old"])
    assert "| 1.00 µs | 2.00 µs | 0.500 (0.400 to 0.600) | ✗ |" in capsys.readouterr().out
    assert gate(monkeypatch, [script], high=0.96)[0] == Exit.GOOD  # it may be as fast
    assert gate(monkeypatch, [script], "--threshold", "0.5")[0] == Exit.GOOD
    assert gate(monkeypatch, [script], "--base", "nope")[0] == Exit.MISUSE
    assert "nope" in capsys.readouterr().err


def test_the_old_script_has_the_files_beside_it(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = script.parent / "a folder"
    for name in ("mine.py", "in/a.h"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"old {name}")
    assert gate(monkeypatch, [folder / "mine.py"]) == (Exit.GOOD, [])
    git(script.parent, "add", "a folder")
    git(script.parent, "commit", "-qm", "folder")
    (folder / "in/a.h").unlink()
    (folder / "in/new.h").write_text("new")
    index = (script.parent / ".git/index").read_bytes()
    monkeypatch.chdir(folder)
    assert gate(monkeypatch, [Path("mine.py")])[1] == ["old mine.py", "old in/a.h"]
    assert (script.parent / ".git/index").read_bytes() == index


def test_a_wrong_kernel_fails_and_a_new_script_is_judged_alone(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = script.with_name("new.py")
    new.write_text("new")
    assert gate(monkeypatch, [new]) == (Exit.GOOD, [])
    wrong = {"verdict": "WRONG_RESULT", "reason": "is off", "time_ns": None}
    status, _ = gate(monkeypatch, [new], "--json", **wrong)
    assert status == Exit.OTHER_VERDICT
    answer = capsys.readouterr().out
    assert json.loads(answer[answer.index("{\n") :])["good"] is False

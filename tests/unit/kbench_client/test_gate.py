"""Scripts: a gate compares them with another commit's, and a push makes drafts of them."""

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
from runs_app.models import Submission
from tasks_app.models import Draft
from tests import factories as make
from tests.unit.kbench_client.conftest import Run

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
            kernels[BEFORE] = {**NOW, "time_ns": 1500.0}  # of the last round
            ends = {"low": 0.4, "high": kernel.get("high", 0.6)}
            ratios = {"kernel": {"value": 0.5, **ends, "old_ns": 1000.0, "new_ns": 2000.0}}
        return {"kernels": kernels, "ratios": ratios}, "", 0

    monkeypatch.setattr("kbench_client.commands.local.checked", checked)
    monkeypatch.setattr("kbench_client.commands.local.require_runner", lambda site: None)
    return main(["gate", *map(str, paths), "--base", "HEAD", *words]), seen


def test_a_slower_kernel_fails(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, seen = gate(monkeypatch, [script])
    assert (status, seen) == (Exit.OTHER_VERDICT, ["old"])
    assert "| correct | 1.00 µs | 2.00 µs | 0.500 (0.400 to 0.600) | ✗ |" in capsys.readouterr().out
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


SCRIPT = """
import torch
sizes = [1024, 4096]
def ref(x): return torch.relu(x) * 2
def inputs(n): return [torch.randn(n)]
def kernel(x): return torch.clamp(x, min=0) * 2
def kernel_two(x): return torch.nn.functional.relu(x) * 2
"""


@pytest.fixture
def ada(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    make.make_runner()
    token = make.make_token(make.make_user(username="ada"))
    monkeypatch.setenv("KBENCH_TOKEN", token)
    (home / "double.py").write_text(SCRIPT)


@pytest.mark.django_db
@pytest.mark.usefixtures("site")
@pytest.mark.usefixtures("ada")
def test_a_script_becomes_a_draft_and_its_kernels_submissions(kbench: Run) -> None:
    ran = kbench("push", "double.py", "--kernel", "kernel_two", "--json")
    assert ran.status == 0, ran.err
    draft, submission = Draft.objects.get(), Submission.objects.get()
    assert (draft.name, draft.author.username) == ("double", "ada")
    assert draft.version is not None
    assert [each.name for each in draft.version.data.workloads] == ["1_024", "4_096"]
    assert (submission.task_version, submission.private) == (draft.version, True)
    assert submission.origin == Submission.Origin.DRY_RUN
    assert "kernel_two" in submission.source
    assert ran.document["submissions"] == [str(submission.pk)]
    assert ran.document["url"] == f"http://localhost{draft.get_absolute_url()}"


@pytest.mark.django_db
@pytest.mark.usefixtures("site")
@pytest.mark.usefixtures("ada")
def test_a_kernel_takes_the_files_beside_it_along(kbench: Run, home: Path) -> None:
    (home / "double.py").write_text(f"import helper\n{SCRIPT}")
    (home / "helper.py").write_text("A = 2\n")
    ran = kbench("push", "double.py", "--kernel", "kernel", "--json")
    assert ran.status == 0, ran.err
    submission = Submission.objects.get()
    assert (submission.entry, submission.files) == ("double.py", {"helper.py": "A = 2\n"})


@pytest.mark.django_db
@pytest.mark.usefixtures("site")
@pytest.mark.usefixtures("ada")
def test_what_cannot_be_pushed_leaves_nothing(kbench: Run, home: Path) -> None:
    ran = kbench("push", "double.py", "--device", "h100")
    assert (ran.status, "no device 'h100'" in ran.err) == (Exit.MISUSE, True)
    (home / "double.py").write_text("def ref(x): return x\n")
    ran = kbench("push", "double.py", "--quiet")
    assert (ran.status, "inputs()" in ran.err) == (Exit.MISUSE, True)
    (home / "double.py").write_text(SCRIPT)
    (home / "double.cu").write_text("// a kernel for a GPU\n")
    ran = kbench("push", "double.py", "--device", "cpu")
    assert (ran.status, "not CUDA" in ran.err) == (Exit.MISUSE, True)
    assert not Draft.objects.exists()
    assert not Submission.objects.exists()

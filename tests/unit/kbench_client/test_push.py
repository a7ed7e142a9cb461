"""A script becomes a draft with its kernels tried, or nothing is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbench_client.exits import Exit
from runs_app.models import Submission
from tasks_app.models import Draft
from tests import factories as make
from tests.unit.kbench_client.conftest import Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]

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


@pytest.mark.usefixtures("ada")
def test_a_kernel_takes_the_files_beside_it_along(kbench: Run, home: Path) -> None:
    (home / "double.py").write_text(f"import helper\n{SCRIPT}")
    (home / "helper.py").write_text("A = 2\n")
    ran = kbench("push", "double.py", "--kernel", "kernel", "--json")
    assert ran.status == 0, ran.err
    submission = Submission.objects.get()
    assert (submission.entry, submission.files) == ("double.py", {"helper.py": "A = 2\n"})


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

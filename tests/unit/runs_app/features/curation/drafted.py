"""Drafts of tasks with kernels, and dry runs of these, for tests."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Language, Verdict
from runs_app.features.curation.checks.dry_run import dry_run
from runs_app.features.curation.drafts.services import create_draft
from runs_app.models import Evaluation
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import Draft, TaskVersion
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make

REFERENCE = """
def make_inputs(N):
    return {"x": None, "N": N}


def forward_fn(x, N):
    return N * x
"""


def kernels(count: int) -> dict[str, Any]:
    """Fields of a task that comes with this many C++ kernels and one for CUDA."""
    paths = [f"kernels/k{number}.cpp" for number in range(count)]
    files = {"reference.py": REFERENCE, "kernels/gpu.cu": make.SOURCE}
    shipped = [ShippedKernel(path=p, agent="tuned", language=Language.CPP) for p in paths]
    shipped.append(ShippedKernel(path="kernels/gpu.cu", agent="tuned", language=Language.CUDA))
    files |= {path: f"// {path}\n{make.SOURCE}" for path in paths}
    return {"files": files, "kernels": tuple(shipped)}


def draft_of(author: User, *, count: int = 1, **overrides: Any) -> Draft:
    """An open draft of a task with this many kernels for the CPU."""
    make.make_cpu()
    fields = {"name": "wave", **kernels(count), **overrides}
    files = write_folder(make.make_task(**fields))
    return create_draft(user=author, files=files, now=make.NOW)


def version_of(draft: Draft) -> TaskVersion:
    """The version of a draft's files as they are."""
    return snapshot(draft=draft, now=make.NOW)


def tried(draft: Draft, user: User, **overrides: Any) -> list[Evaluation]:
    """A dry run of a draft's kernels on the CPU."""
    fields = {"device": make.make_cpu(), "mode": "quick", "now": make.NOW, **overrides}
    return dry_run(version=version_of(draft), user=user, **fields)


def finish(evaluation: Evaluation, verdict: Verdict) -> None:
    """End an evaluation with a verdict."""
    result = make.make_result(evaluation, verdict=verdict, reason=f"because: {verdict}")
    make.send(evaluation, EventKind.STARTED, {"runner": "nobody", "at": 0.0}, seq=1)
    make.send(evaluation, EventKind.FINISHED, {"result": codec.encode(result)}, seq=2)

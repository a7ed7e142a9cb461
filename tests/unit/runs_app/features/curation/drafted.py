"""Drafts of tasks, what people do with them, and dry runs of their kernels, for tests."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Language
from runs_app.features.curation.checks.dry_run import dry_run
from runs_app.features.curation.drafts.page import example_files
from runs_app.features.curation.drafts.services import create_draft, edit_draft, send_to_review
from runs_app.models import Evaluation
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import Draft, Soundness, TaskVersion
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


def example(name: str = "wave", **files: str) -> dict[str, str]:
    """The example under a name of its own, with overrides of whole files."""
    texts = example_files()
    texts["task.toml"] = texts["task.toml"].replace('"scaled_sum"', f'"{name}"')
    return texts | files


def created(user: User | None = None, name: str = "wave", **files: str) -> Draft:
    """An open draft of the example."""
    return create_draft(user=user or make.make_user(), files=example(name, **files), now=make.NOW)


def edited(draft: Draft, user: User | None = None, **files: str) -> Draft:
    """The draft with other texts of these files."""
    draft.refresh_from_db()
    return edit_draft(
        draft=draft, user=user or draft.author, files={**draft.files, **files},
        revision=draft.revision, now=make.later(1),
    )  # fmt: skip


def in_review(user: User | None = None, name: str = "wave", **files: str) -> Draft:
    """A draft of the example that its author has sent to review."""
    draft = created(user, name, **files)
    return send_to_review(draft=draft, user=draft.author, now=make.later(2))


def prove(version: TaskVersion | None, **changes: Any) -> Soundness:
    """A report of a version, which passed unless told otherwise."""
    assert version is not None
    fields: dict[str, Any] = {
        "passed": True, "mutants": 3, "survivors": [], "filters": 2, "flagged": [], "kind": "cpu",
        "device": "CPU", "document": {}, "created_at": make.NOW,
    }  # fmt: skip
    return Soundness.objects.create(version=version, **{**fields, **changes})


def signed_in(user: User) -> Client:
    """A browser of this person."""
    client = Client()
    client.force_login(user)
    return client


def shown(client: Client, draft: Draft, query: str = "") -> str:
    """Text of a draft's page."""
    return client.get(draft.get_absolute_url() + query).content.decode()


def act(client: Client, draft: Draft, action: str, reason: str = "", **values: object) -> Any:
    """Press a button of a draft's page, which shows it as it is unless `values` say otherwise."""
    draft.refresh_from_db()
    public = draft.task.current_version if draft.task else None
    posted = {
        "action": action, "reason": reason, "revision": draft.revision,
        "replaces": public.number if public else 0,
        "reports": draft.version.evidence if draft.version else "", **values,
    }  # fmt: skip
    return client.post(reverse("draft-act", args=[draft.pk]), posted)

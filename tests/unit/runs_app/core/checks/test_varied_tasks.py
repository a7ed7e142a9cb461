"""A check of an imported file finds workloads for it, and what comes of them on the site."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.event import EventKind
from gpu_runner.data.formats import load_task
from gpu_runner.data.task import Task as TaskData
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from runs_app.core.checks.services import request_check
from runs_app.core.messaging import orders
from runs_app.models import Status, TaskCheck
from tasks_app.formats.task_writing import write_folder
from tasks_app.models import AuditEntry, Draft, Soundness, Task, TaskVersion
from tasks_app.publishing.services import store_version
from tests import factories as make
from tests.unit.runs_app.core.checks.test_task_checks import a_draft, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]

FILE = """
import torch

rows = 64

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(rows, 4)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def data(tmp_path: Path) -> TaskData:
    path = tmp_path / "1_relu.py"
    path.write_text(FILE)
    return load_task(path)


def further(data: TaskData, **changes: Any) -> list[Workload]:
    own = data.workloads[0]
    half = replace(own, name="half", parameters={"rows": 32})
    return [own, half, replace(half, name="odd", unlisted=True, parameters={"rows": 61}, **changes)]


def ask(data: TaskData, state: str = Task.State.REVIEW) -> TaskCheck:
    task, version, _ = store_version(data, make.NOW, state=state)
    Task.objects.filter(pk=task.pk).update(current_version=version, state=state)
    return request_check(
        version=version, device=make.make_cpu(), user=make.make_admin(), now=make.NOW
    )


def finish(check: TaskCheck, found: Any, /, **changes: Any) -> TaskCheck:
    """Send a report about the task with these workloads."""
    varied = replace(check.version.data, workloads=tuple(found))
    told = {"digest": varied.digest(), "workloads": codec.encode(tuple(found))}
    document = report(check) | told | changes
    make.send(check, EventKind.FINISHED, {"report": document}, seq=1)
    check.refresh_from_db()
    return check


def test_a_runner_is_asked_to_vary_what_has_its_own_shape_alone(data: TaskData) -> None:
    assert orders.order_of(ask(data)).request["vary"] is True
    own = replace(data.workloads[0], name="own")
    assert orders.order_of(ask(replace(data, workloads=(own,)))).request["vary"] is False
    public = ask(replace(data, name="public"))
    TaskVersion.objects.filter(pk=public.version_id).update(published_at=make.NOW)
    public.version.refresh_from_db()
    assert orders.order_of(public).request["vary"] is False


def test_the_varied_version_takes_the_place_of_the_file_that_waits(data: TaskData) -> None:
    check = ask(data)
    before = check.version
    draft = a_draft(before, make.make_user(), files=write_folder(data), state=Draft.State.REVIEW)
    check = finish(check, further(data))
    assert (check.status, check.passed, check.reason) == (Status.FINISHED, True, "")
    varied = check.version
    assert [w.name for w in varied.data.workloads] == ["default", "half", "odd"]
    assert (varied.number, varied.unproven, before.reports.count()) == (2, "", 0)
    task = Task.objects.get()
    assert (task.current_version, task.state) == (varied, Task.State.REVIEW)
    draft.refresh_from_db()
    assert (draft.version, draft.revision, draft.state) == (varied, 2, Draft.State.REVIEW)
    assert draft.files == write_folder(varied.data)
    entry = AuditEntry.objects.get(kind=AuditEntry.Kind.EDITED)
    assert (entry.draft, entry.version, entry.actor) == (draft, varied, check.asked_by)


def test_a_draft_that_was_edited_meanwhile_stays(data: TaskData) -> None:
    check = ask(data, Task.State.DRAFT)
    draft = a_draft(check.version, make.make_user(), files={"task.toml": "x"}, version_id=None)
    Draft.objects.update(version=None)
    check = finish(check, further(data))
    assert check.version.number == 2
    draft.refresh_from_db()
    assert (draft.version, draft.files, draft.revision) == (None, {"task.toml": "x"}, 1)
    assert Task.objects.get().state == Task.State.DRAFT


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unlisted": False, "hidden": False}, "is not a workload that a varied file can have"),
        ({"directions": (Direction.BACKWARD,)}, "is not a workload that a varied file can have"),
        ({"devices": ()}, "is empty"),
        ({"name": "half"}, "which a varied file can't have"),
        ({"parameters": {"rows": 0}}, "must be a positive integer"),
        ({"parameters": {"rows": 2**63}}, "must be a positive integer"),
        ({"parameters": {"torch": 8}}, "Model uses it"),
        ({"parameters": {"elsewhere": 8}}, "must be removed"),
        ({"parameters": {"rows": [8] * 4096}}, "longer than 4096 bytes"),
    ],
)
def test_impossible_workloads_end_it(data: TaskData, changes: dict[str, Any], words: str) -> None:
    wrong = further(data)
    wrong[2] = replace(wrong[2], **changes)
    check = ask(data)
    document = report(check) | {"workloads": codec.encode(tuple(wrong))}
    make.send(check, EventKind.FINISHED, {"report": document}, seq=1)
    check.refresh_from_db()
    assert (check.status, check.passed, check.version.number) == (Status.FINISHED, None, 1)
    assert words in check.reason
    assert not Soundness.objects.exists()
    assert TaskVersion.objects.count() == 1


def test_what_is_no_list_of_workloads_ends_it(data: TaskData) -> None:
    for workloads, words in (
        ({}, "must be a list of at most 8"),
        ([{}] * 9, "must be a list of at most 8"),
        ([7], "workloads[0]"),
        ([], "which a varied file can't have"),
    ):
        check = finish(ask(data), data.workloads, workloads=workloads)
        assert (check.passed, words in check.reason) == (None, True)


def test_others_keep_their_version(data: TaskData) -> None:
    check = finish(ask(data), data.workloads)  # nothing is added
    assert (check.version.number, check.version.unproven) == (1, "")
    assert not AuditEntry.objects.filter(kind=AuditEntry.Kind.EDITED).exists()
    check = ask(replace(data, workloads=tuple(further(data))))
    assert "come from the author" in finish(check, further(data)).reason
    wrong = finish(ask(replace(data, name="two")), further(data), digest="0" * 64)
    assert "digest: is '000" in wrong.reason
    assert wrong.version.number == 1


def test_the_file_may_become_one_for_cuda_alone(data: TaskData) -> None:
    large = [replace(each, devices=(DeviceKind.CUDA,)) for each in further(data)]
    check = finish(ask(data), large)
    assert check.version.data.workloads[0].devices == (DeviceKind.CUDA,)
    assert json.loads(json.dumps(check.version.document)) == codec.encode(check.version.data)

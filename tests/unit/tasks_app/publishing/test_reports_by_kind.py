"""Each kind of device has a report of its own; a brief one counts what is as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.test import Client

from gpu_runner.data.formats import catalog_folder, load_task
from tasks_app import selectors
from tasks_app.formats import loader
from tasks_app.models import Soundness, Task, TaskVersion
from tasks_app.publishing.services import record_report
from tests import factories as make
from tests.unit.tasks_app.publishing.test_publish import write_task
from tests.unit.tasks_app.publishing.test_soundness import MUTANT, load, report

pytestmark = pytest.mark.django_db


def test_a_pass_on_one_device_does_not_answer_what_another_found(client: Client) -> None:
    load(catalog_folder() / "vector_add")
    version = TaskVersion.objects.get(task__slug="vector_add")
    sound = dict(version.reports.get().document)
    on_gpu, on_other = {**sound, "device": "gpu"}, {**sound, "device": "gpu-2"}
    failed = {**on_gpu, "passed": False, "survivors": ["forward: zeros"]}
    for document, kept in ((failed, failed), (on_other, failed), (sound, failed)):
        record_report(version, loader.report_of(document), make.later(1), made_here=True)
        assert version.reports.get(kind="cuda").document == kept
        assert version.reports.get(kind="cpu").document == sound
    assert version.unproven.startswith("on gpu, 1 of ")
    for query, is_sound in (("", False), ("?device=cpu", True)):
        page = client.get(f"/tasks/vector_add/soundness/{query}").content.decode()
        assert ("Sound.</strong>" in page) is is_sound
    address = "/api/v1/tasks/vector_add/soundness"
    kinds = [client.get(address + end).json()["kind"] for end in ("", "?kind=cpu")]
    assert kinds == ["cuda", "cpu"]
    assert client.get(address + "?kind=tpu").status_code == 422
    load(catalog_folder() / "vector_add")  # as each start does: a person decides what was found
    assert Task.objects.get(slug="vector_add").state == Task.State.PUBLISHED
    record_report(version, loader.report_of(on_gpu), make.later(2), made_here=True)
    assert (version.unproven, version.unseen) == ("", ())
    shown = client.get("/tasks/vector_add/").content.decode()
    assert "(on gpu, cpu)" in shown or "(on cpu, gpu)" in shown


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of a task."""
    return write_task(tmp_path / "tasks" / "double")


@pytest.fixture
def digest(task: Path) -> str:
    """The digest of that task."""
    return load_task(task, "auto").digest()


COUNTS = {"failed": {"n256": 3, "n4096": 1}, "passed": 2, "right": 1}


def test_a_brief_report_counts_and_proves_no_less(task: Path, digest: str) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"unlisted": {}}, "tries no wrong kernel"),
        ({"unlisted": {"forward": COUNTS | {"failed": {}}}}, "tries no wrong kernel"),
        ({"unlisted": {"forward": COUNTS | {"passed": 0}}}, "cover filters"),
        ({"mutants": [MUTANT | {"state": "survived"}]}, "1 of 5 wrong kernels pass it"),
        ({"honest": []}, "did not pass"),
        ({}, ""),
    )
    short: dict[str, Any] = {"mutants": [], "filters": [], "unlisted": {"forward": COUNTS}}
    for changes, words in cases:
        folder = report(task.parents[1] / "reports", digest, **(short | changes))
        assert words in load(task, "--soundness", folder)
        assert (selectors.find_task("double") is None) == bool(words)
    found = Soundness.objects.get()
    assert (found.mutants, found.filters, found.untried) == (4, 2, 0)


def test_counts_that_count_nothing_are_refused(task: Path, digest: str) -> None:
    for unlisted in (
        [], {"sideways": COUNTS}, {"forward": COUNTS | {"passed": -1}},
        {"forward": COUNTS | {"right": 10**12}}, {"forward": {"failed": {"n256": "3"}}},
    ):  # fmt: skip
        folder = report(task.parents[1] / "reports", digest, unlisted=unlisted)
        with pytest.raises(CommandError, match="unlisted"):
            load(task, "--soundness", folder)

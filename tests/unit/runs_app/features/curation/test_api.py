"""Tasks that programs write: what is refused about them is told at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from gpu_runner.data.codec import encode
from gpu_runner.data.formats import find_task
from runs_app.models import Submission
from tasks_app.models import Draft
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def document() -> Any:
    """A task's document under a name of its own."""
    return {**encode(find_task("vector_add")), "name": "own_sum", "kernels": []}


def post(document: Any, *kernels: dict[str, Any]) -> Any:
    token = make.make_token(make.make_user())
    body = {"task": document, "kernels": kernels, "device": "cpu"}
    headers = {"Authorization": f"Bearer {token}"}
    return Client().post("/api/v1/drafts", body, content_type="application/json", headers=headers)


def test_all_wrong_kernels_are_named(document: Any) -> None:
    make.make_cpu()
    wrong = ({"language": "rust", "source": ""}, {"language": "cpp", "source": " "})
    told = post(document, *wrong).json()
    named = [told["field"], *(each["field"] for each in told["also"])]
    assert named == ["kernels.0.language", "kernels.0.source", "kernels.1.source"]
    assert not Draft.objects.exists()


@pytest.mark.usefixtures("jobs")
def test_a_kernel_has_its_files(document: Any) -> None:
    make.make_cpu()
    kernel = {"language": "cpp", "source": make.SOURCE, "entry": "main.cpp"}
    told = post(document, {**kernel, "files": {"../sum.h": ""}}).json()
    assert (told["field"], "'../sum.h'" in told["reason"]) == ("kernels.0.files", True)
    assert post(document, {**kernel, "files": {"sum.h": "int a;"}}).status_code == 201
    assert Submission.objects.get().solution.texts == {
        "main.cpp": make.SOURCE,
        "sum.h": "int a;",
    }


def test_all_faults_of_a_task_are_named(document: Any) -> None:
    told = post({**document, "abi": "fortran", "dtype": 7}).json()
    assert [told["field"], *(each["field"] for each in told["also"])] == ["task.abi", "task.dtype"]

"""The API's view of tasks."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Field, Router, Schema

from tasks_app import selectors
from tasks_app.models import Task

router = Router(tags=["tasks"])


class TaskSummary(Schema):
    """A task in the list."""

    name: str = Field(examples=["softmax"])
    title: str = Field(examples=["Row-wise softmax"])
    scenario: str = Field(examples=["llm"])
    abi: str = Field(examples=["c"])
    dtype: str = Field(examples=["float32"])
    directions: list[str] = Field(examples=[["forward"]])
    version: int = Field(examples=[1])
    url: str = Field(examples=["/tasks/softmax/"])


class TaskDetail(TaskSummary):
    """A task with everything that an author of a kernel needs."""

    digest: str = Field(description="SHA-256 of the version; scores attach to it.")
    document: dict[str, Any] = Field(
        description="The task: signature, workloads, tolerance, work formula, reference source."
    )


@router.get("/tasks", response=list[TaskSummary], summary="All published tasks")
def list_tasks(request: HttpRequest) -> list[dict[str, Any]]:
    """Answer with the published tasks, by name."""
    return [_summary(task) for task in selectors.published_tasks()]


@router.get("/tasks/{slug}", response=TaskDetail, summary="One task")
def show_task(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Answer with one task; hidden workloads are shown to admins only."""
    task = selectors.find_task(slug)
    if task is None or task.current_version is None:
        raise Http404(f"there is no task {slug!r}; see /api/v1/tasks")
    document = selectors.task_document(task.current_version, request.user)
    return {**_summary(task), "digest": task.current_version.digest, "document": document}


def _summary(task: Task) -> dict[str, Any]:
    version = task.current_version
    assert version is not None, "a published task has a current version"
    return {
        "name": task.slug,
        "title": task.title,
        "scenario": task.scenario,
        "abi": version.abi,
        "dtype": version.dtype,
        "directions": list(version.directions),
        "version": version.number,
        "url": task.get_absolute_url(),
    }

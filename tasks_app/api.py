"""The API's view of tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from ninja import Field, Router, Schema

from gpu_runner.data.codec import encode
from tasks_app import selectors, soundness_page
from tasks_app.models import Soundness, Task

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


class SoundnessOut(Schema):
    """What became of wrong kernels made from the reference, and of the task's filters."""

    passed: bool
    mutants: int
    survivors: list[str] = Field(description="Wrong kernels that pass the task.")
    filters: int = Field(description="0: the report was made before there were any.")
    flagged: list[str] = Field(description="Filters that speak against the task.")
    refusal: str = Field(description="Why the version is not sound; empty if it is.")
    device: str = Field(examples=["cpu"])


class FilterOut(Schema):
    """What a filter found in one direction."""

    name: str = Field(examples=["input impact: weight"])
    direction: str
    workload: str
    value: float | str | None = Field(description="Null: it cannot be said.")
    limit: str = Field(examples=["at most 0.9"])
    passed: bool | None = Field(description="Null: it cannot be said.")
    text: str


class TriedKernelOut(Schema):
    """A kernel made from the reference, on the workload that says most."""

    name: str = Field(examples=["half the reduction"])
    direction: str
    workload: str
    scaled: float | str | None = Field(
        description="Largest error over what is allowed; inf and nan are words."
    )


class MutantOut(TriedKernelOut):
    """A wrong kernel."""

    state: str = Field(
        description="failed, survived, or equivalent: it is the reference wherever it was tried."
    )


class SoundnessDetail(Schema):
    """The whole report of a task's current version, with the keys that the command writes."""

    task: str
    version: int
    digest: str
    device: str = Field(examples=["cpu"])
    created_at: datetime = Field(description="When the site got it.")
    passed: bool
    refusal: str = Field(description="Why the version is not sound; empty if it is.")
    survivors: list[str]
    mutants: list[MutantOut]
    honest: list[TriedKernelOut] = Field(description="Right kernels; `scaled` is at most 1.")
    filters: list[FilterOut]


class TaskDetail(TaskSummary):
    """A task with everything that an author of a kernel needs."""

    digest: str = Field(description="SHA-256 of the version; scores attach to it.")
    state: str = Field(examples=["published"])
    soundness: SoundnessOut | None = Field(description="None: nobody has proven it.")
    override: str = Field(description="Why it was published without a proof; mostly empty.")
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
    task = selectors.find_task(slug, request.user)
    if task is None or task.current_version is None:
        raise Http404(f"there is no task {slug!r}; see /api/v1/tasks")
    document = selectors.task_document(task.current_version, request.user)
    version = task.current_version
    override = version.overrides.first()
    return {
        **_summary(task),
        "digest": version.digest,
        "state": task.state,
        "soundness": Soundness.objects.filter(version=version).first(),
        "override": override.reason if override else "",
        "document": document,
    }


@router.get("/tasks/{slug}/soundness", response=SoundnessDetail, summary="What proves a task sound")
def show_soundness(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Answer with filters, wrong and honest kernels; hidden workloads are shown to admins only."""
    task = selectors.find_task(slug, request.user)
    soundness = Soundness.objects.filter(version=task.current_version).first() if task else None
    if task is None or soundness is None:
        raise Http404(f"there is no soundness report of a task {slug!r}")
    report = soundness_page.report_for(soundness, request.user)
    return {
        "task": task.slug,
        "version": soundness.version.number,
        "digest": soundness.version.digest,
        "device": soundness.device,
        "created_at": soundness.created_at,
        "passed": soundness.passed,
        "refusal": soundness.refusal,
        "survivors": soundness.survivors,
        **encode(report),
    }


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

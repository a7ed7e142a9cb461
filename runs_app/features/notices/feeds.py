"""Atom feeds of tasks, boards and runs: what everybody may see of them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.contrib.syndication.views import Feed
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils.feedgenerator import Atom1Feed

from runs_app.core.integrity.eligibility import eligible_evaluations
from runs_app.core.work.result_state import result_state
from runs_app.features.notices.views import visible_run
from runs_app.models import Device, Evaluation, Run, RunEvent
from tasks_app.models import Task
from tasks_app.numbers import duration_text, times
from tasks_app.parameters import takes
from tasks_app.selectors import find_task

_NEWEST = 30
_TOLD = ("started", "paused", "resumed", "stopped", "finished", "extended")


class _Results(Feed):  # type: ignore[type-arg]
    """Results that stand on boards, newest first."""

    feed_type = Atom1Feed

    def results(self) -> QuerySet[Evaluation]:
        """The newest, with what an entry shows."""
        return (
            eligible_evaluations()
            .select_related("submission__agent", "task_version__task", "device")
            .defer("task_version__document", "submission__source", "submission__files")
            .order_by("-finished_at")
        )

    def item_title(self, item: Evaluation) -> str:
        speedup = times(item.rated) if item.rated else "correct"
        where = f"{item.task_version.task.slug} on {item.device.name}"
        return f"{item.submission.agent.name}: {speedup}, {where}"

    def item_description(self, item: Evaluation) -> str:
        state = result_state(item)
        stands = f", {state.label.lower()}" if state else ""
        return f"{duration_text(item.latency_ns)}, {item.direction}{stands}"

    def item_link(self, item: Evaluation) -> str:
        return item.get_absolute_url()

    def item_pubdate(self, item: Evaluation) -> datetime | None:
        return item.finished_at

    item_updateddate = item_pubdate


class TaskFeed(_Results):
    """Results of a task, on all devices."""

    def get_object(self, request: HttpRequest, *_: object, slug: str, **__: object) -> Task:
        """The task, if everybody may see it; raises `Http404`."""
        task = find_task(slug)
        if task is None:
            raise Http404("There is no such task.")
        return task

    def title(self, obj: Task) -> str:
        return f"kbench: {obj.slug}"

    def link(self, obj: Task) -> str:
        return obj.get_absolute_url()

    def items(self, obj: Task) -> list[Evaluation]:
        return list(self.results().filter(task_version__task=obj)[:_NEWEST])


@takes("task")
class BoardFeed(_Results):
    """Results on a device, of all tasks or of one."""

    def get_object(
        self, request: HttpRequest, *_: object, device_slug: str, **__: object
    ) -> tuple[Device, Task | None]:
        """The device, and the task in the address; raises `Http404`."""
        device = Device.objects.filter(pk=device_slug).first()
        slug = request.GET.get("task", "")
        task = find_task(slug) if slug else None
        if device is None or (slug and task is None):
            raise Http404("There is no such board.")
        return device, task

    def title(self, obj: tuple[Device, Task | None]) -> str:
        device, task = obj
        return f"kbench: {task.slug} on {device.name}" if task else f"kbench: {device.name}"

    def link(self, obj: tuple[Device, Task | None]) -> str:
        device, task = obj
        return f"/leaderboard/?device={device.pk}" + (f"&task={task.slug}" if task else "")

    def items(self, obj: tuple[Device, Task | None]) -> list[Evaluation]:
        device, task = obj
        rows = self.results().filter(device=device)
        return list((rows.filter(task_version__task=task) if task else rows)[:_NEWEST])


class RunFeed(Feed):  # type: ignore[type-arg]
    """What became of a run: its beginning, pauses and end, and its best candidate."""

    feed_type = Atom1Feed

    def get_object(self, request: HttpRequest, *_: object, run_id: UUID, **__: object) -> Run:
        """The run, if everybody may see it; raises `Http404`."""
        run = visible_run(str(run_id), AnonymousUser())
        if run is None:
            raise Http404("There is no such run.")
        return run

    def title(self, obj: Run) -> str:
        return f"kbench: run {obj}"

    def link(self, obj: Run) -> str:
        return obj.get_absolute_url()

    def items(self, obj: Run) -> list[RunEvent]:
        rows = obj.events.filter(kind__in=_TOLD).select_related("run").order_by("-seq")
        return list(rows[:_NEWEST])

    def item_title(self, item: RunEvent) -> str:
        return f"{item.run}: {item.kind}"

    def item_description(self, item: RunEvent) -> str:
        return str(item.payload.get("by", "")) or item.kind

    def item_link(self, item: RunEvent) -> str:
        return f"{item.run.get_absolute_url()}#event-{item.seq}"

    def item_pubdate(self, item: RunEvent) -> datetime:
        return item.created_at

    item_updateddate = item_pubdate

"""Questions that pages and the API ask about tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.http import Http404

from gpu_runner.data.verdict import Direction
from tasks_app.disclosure import public_soundness, public_task, sees_hidden
from tasks_app.models import Draft, Soundness, Task, TaskVersion
from tasks_app.parameters import named_like
from tasks_app.people import Viewer, shown_name_of

_MOST_KNOWN = 10_000
_LONGEST_NAME = 100  # chosen: characters of a refused name; no task has more
_known: dict[str, Outline] = {}
"""By digest, which stands for all of a version."""


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A version in brief."""

    directions: tuple[str, ...]
    public: int
    """Workloads that everybody may see."""
    hidden: int
    """Workloads that admins alone may see."""
    description: str
    baselines: tuple[str, ...] = ()


def outlines(digests: Iterable[str]) -> dict[str, Outline]:
    """By digest: the versions in brief. Only documents that are new to this process are read."""
    wanted = set(digests)
    new = wanted - _known.keys()
    if new:
        if len(_known) + len(new) > _MOST_KNOWN:
            _known.clear()
            new = wanted
        rows = TaskVersion.objects.filter(digest__in=new).order_by()
        _known.update(
            (digest, _outline(held)) for digest, held in rows.values_list("digest", "document")
        )
    return {digest: _known[digest] for digest in wanted if digest in _known}


def directions_of(tasks: QuerySet[Task]) -> dict[str, tuple[str, ...]]:
    """By name of each task: the directions of its current version."""
    digests = dict(tasks.values_list("slug", "current_version__digest"))
    known = outlines(digests.values())
    return {slug: known[digest].directions for slug, digest in digests.items()}


def _outline(document: dict[str, Any]) -> Outline:
    hidden = sum(bool(workload.get("hidden")) for workload in document["workloads"])
    return Outline(
        directions=tuple(document.get("directions") or (Direction.FORWARD.value,)),
        public=len(document["workloads"]) - hidden,
        hidden=hidden,
        description=document.get("description", ""),
        baselines=tuple(document["baselines"]),
    )


def published_tasks() -> QuerySet[Task]:
    """Tasks that take submissions, with their current versions, by name."""
    return evaluable_tasks(None)


def evaluable_tasks(user: Viewer | None) -> QuerySet[Task]:
    """Tasks that take submissions of `user`: admins may try those in review as well."""
    states = [Task.State.PUBLISHED, *([Task.State.REVIEW] if sees_hidden(user) else [])]
    return (
        Task.objects.filter(state__in=states, current_version__isnull=False)
        .select_related("current_version")
        .order_by("slug")
    )


def tasks_in_review(user: Viewer | None) -> QuerySet[Task]:
    """Tasks that are not public yet, for admins; none for others."""
    return evaluable_tasks(user).filter(state=Task.State.REVIEW)


def find_task(slug: str, user: Viewer | None = None) -> Task | None:
    """The task of that name if it is published, or `user` is an admin and it is in review."""
    return evaluable_tasks(user).filter(slug=slug).first()


def no_task(slug: str) -> str:
    """Why a task's name is refused, and which tasks have names like it."""
    like = named_like(slug, list(published_tasks().values_list("slug", flat=True)))
    return f"there is no task {slug[:_LONGEST_NAME]!r}; {like}; see /api/v1/tasks"


def known_task(slug: str, user: Viewer | None) -> Task | None:
    """The task of that name if `user` may know of it.

    A retired task stays known to everybody, because results point to it; what is in draft or in
    review is for admins.
    """
    states = list(Task.State) if sees_hidden(user) else [Task.State.PUBLISHED, Task.State.RETIRED]
    return (
        Task.objects.filter(slug=slug, state__in=states).select_related("current_version").first()
    )


def seen_versions(task: Task, user: Viewer | None) -> QuerySet[TaskVersion]:
    """The task's versions that `user` may see, newest first: admins all, others public ones."""
    versions = TaskVersion.objects.filter(task=task).select_related("task").order_by("-number")
    if sees_hidden(user):
        return versions
    current = Q(task__state=Task.State.PUBLISHED, task__current_version=F("pk"))
    return versions.filter(Q(published_at__isnull=False) | current)


def find_version(slug: str, number: int, user: Viewer | None) -> TaskVersion | None:
    """That version if `user` may see it."""
    task = known_task(slug, user)
    return seen_versions(task, user).filter(number=number).first() if task else None


def shown_version(slug: str, user: Viewer | None) -> TaskVersion | None:
    """The version that the task's page shows: the current one, if `user` may see the task.

    A retired task may have got a new version that nobody was to see; its page shows the last
    that was public.
    """
    task = known_task(slug, user)
    if task is None or task.state == Task.State.DRAFT or task.current_version is None:
        return None
    if task.state != Task.State.RETIRED:
        return task.current_version
    public = seen_versions(task, None)
    current = public.filter(pk=task.current_version.pk).first()
    return current or public.first() or (task.current_version if sees_hidden(user) else None)


def drafts_of_new(tasks: Iterable[Task]) -> dict[int, Draft]:
    """By task: of those without a current version, the draft whose version would be the first.

    The one in review, or the last changed of which a version has been made.
    """
    new = [task.pk for task in tasks if task.current_version_id is None]
    under_way = Draft.objects.filter(state__in=Draft.UNDER_WAY)
    drafts = under_way.filter(task__in=new, version__isnull=False).select_related("version")
    light = drafts.defer("files", "version__document")
    rows = sorted(light, key=lambda draft: (draft.state == Draft.State.REVIEW, draft.changed_at))
    return {draft.task_id: draft for draft in rows if draft.task_id is not None}


def open_draft(draft_id: UUID, user: Viewer) -> Draft:
    """The draft; raises `Http404` unless all of its files are open to `user`."""
    draft = Draft.objects.select_related("task", "version__task").filter(pk=draft_id).first()
    if draft is None or not draft.open_to(user):
        raise Http404("There is no such draft, or it is somebody else's.")
    return draft


def versions_made_in(draft: Draft) -> list[int]:
    """Keys of the versions of its present files and of earlier ones."""
    return list(draft.versions.order_by().values_list("pk", flat=True))


def versions_in_review(task: Task) -> set[int]:
    """Keys of the versions about which an admin is to decide."""
    drafts = task.drafts.filter(state=Draft.State.REVIEW, version__isnull=False)
    found = set(drafts.values_list("version_id", flat=True))
    if task.state == Task.State.REVIEW and task.current_version_id is not None:
        found.add(task.current_version_id)
    return {key for key in found if key is not None}


def first_draft_of(task: Task) -> Draft | None:
    """The draft with which somebody proposed the task; None if it did not begin as a proposal."""
    rows = _published_drafts().filter(task=task).select_related("author", "taken_by", "version")
    first = rows.defer("files", "version__document").order_by("version__number", "pk").first()
    return first if first is not None and first.follows_id is None else None


def task_writers(task: Task | None = None) -> set[tuple[str, str]]:
    """Names of tasks, each with a user who wrote or changed a public version in the browser.

    They know hidden workloads that it had, be they admins or not. Of `task` alone, or of all.
    """
    drafts = _published_drafts() if task is None else _published_drafts().filter(task=task)
    rows = drafts.values_list("task__slug", shown_name_of("author"), shown_name_of("taken_by"))
    return {(slug, name) for slug, *names in rows for name in names if name}


def _published_drafts() -> QuerySet[Draft]:
    """Drafts of which the version is public or was."""
    settled = Draft.objects.exclude(state__in=Draft.UNDER_WAY)
    return settled.filter(version__published_at__isnull=False, task__isnull=False)


def task_document(version: TaskVersion, user: Viewer | None) -> dict[str, Any]:
    """The encoded task as `user` may see it."""
    if sees_hidden(user):
        return dict(version.document)
    return public_task(version.document)


def soundness_document(soundness: Soundness, user: Viewer | None) -> dict[str, Any]:
    """The soundness report as `user` may see it."""
    if sees_hidden(user):
        return dict(soundness.document)
    return public_soundness(soundness.document, soundness.version.hidden_names)

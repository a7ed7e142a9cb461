"""What lists say of tasks, kept by digest: a version never changes, and its document is large."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from gpu_runner.data.verdict import Direction
from tasks_app.models import Task, TaskVersion

_MOST_KNOWN = 10_000
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
            (digest, _of(held)) for digest, held in rows.values_list("digest", "document")
        )
    return {digest: _known[digest] for digest in wanted if digest in _known}


def directions_of(tasks: QuerySet[Task]) -> dict[str, tuple[str, ...]]:
    """By name of each task: the directions of its current version."""
    digests = dict(tasks.values_list("slug", "current_version__digest"))
    known = outlines(digests.values())
    return {slug: known[digest].directions for slug, digest in digests.items()}


def _of(document: dict[str, Any]) -> Outline:
    hidden = sum(bool(workload.get("hidden")) for workload in document["workloads"])
    return Outline(
        directions=tuple(document.get("directions") or (Direction.FORWARD.value,)),
        public=len(document["workloads"]) - hidden,
        hidden=hidden,
        description=document.get("description", ""),
        baselines=tuple(document["baselines"]),
    )

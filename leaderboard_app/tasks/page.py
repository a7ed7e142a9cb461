"""What a task's page puts together of the task and of this site."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from runs_app.queue.devices import devices
from tasks_app.pages.task_page import KernelView, WorkloadRow

_NAMES = {"cpu": "CPUs", "cuda": "CUDA GPUs"}
_KINDS = {"cpp": "cpu", "cuda": "cuda"}


@dataclass(frozen=True, kw_only=True)
class WorkloadGroup:
    """Workloads for the same kinds of device; `is_here` if this site has a runner of one."""

    name: str
    is_here: bool
    rows: Sequence[WorkloadRow]


def kinds_here() -> set[str]:
    """Kinds of the devices for which this site has or had a runner."""
    known = devices().filter(runners__isnull=False)
    return set(known.order_by().values_list("kind", flat=True).distinct())


def workload_groups(rows: Iterable[WorkloadRow], here: Collection[str]) -> list[WorkloadGroup]:
    """By kinds of device, those that this site can measure first."""
    by_kinds: dict[tuple[str, ...], list[WorkloadRow]] = {}
    for row in rows:
        by_kinds.setdefault(row.devices, []).append(row)
    groups = [
        WorkloadGroup(
            name=" and ".join(_NAMES.get(kind, kind) for kind in kinds),
            is_here=not here or bool(set(kinds) & set(here)),
            rows=tuple(held),
        )
        for kinds, held in by_kinds.items()
    ]
    return sorted(groups, key=lambda group: not group.is_here)


def kernels_first_here(kernels: Iterable[KernelView], here: Collection[str]) -> list[KernelView]:
    """The kernels that this site can measure first."""
    return sorted(kernels, key=lambda kernel: _KINDS.get(kernel.language, "") not in here)

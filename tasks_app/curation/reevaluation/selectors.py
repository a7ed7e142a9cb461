"""Which submissions of one version of a task could be evaluated again, and their places there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Device, Evaluation, Status, Submission
from tasks_app.models import Task, TaskVersion
from tasks_app.pages.task_page import entrances

NOT_ENTERED = (Submission.Origin.RUN.value, Submission.Origin.DRY_RUN.value)
"""Origins of submissions that nobody carries on: they were for no board."""


class What(StrEnum):
    """Which submissions are chosen."""

    BEST = "best"
    TOP = "top"
    CORRECT = "correct"
    ALL = "all"


WHAT_WORDS = {
    What.BEST: "the best of each agent",
    What.TOP: "the best of the board",
    What.CORRECT: "all correct ones",
    What.ALL: "everything ranked",
}


class Board(NamedTuple):
    """Where places are counted: a device and a direction of one version."""

    device: str
    direction: str


class Key(NamedTuple):
    """What makes two submissions the same entry: ids of author and agent, and the solution."""

    author: int
    agent: int
    digest: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What an admin asks for; `target` is the task's current version, `top` counts for TOP only."""

    source: TaskVersion
    target: TaskVersion
    devices: tuple[Device, ...]
    what: What
    top: int

    @property
    def same(self) -> bool:
        """Whether the version is only measured again."""
        return self.source.pk == self.target.pk

    @property
    def words(self) -> str:
        """The choice in a few words."""
        return (
            f"the best {self.top} of the board" if self.what is What.TOP else WHAT_WORDS[self.what]
        )


@dataclass(frozen=True, kw_only=True)
class Change:
    """How the entry point of kernels differs between two versions."""

    name: str
    before: str
    after: str


def versions_with_results(task: Task) -> list[tuple[TaskVersion, int]]:
    """Versions that are or were public, with their ranked submissions: what to carry on first.

    The newest earlier one comes first, then other ones, the current one last.
    """
    current = task.current_version
    if current is None:
        return []
    ended = Q(evaluations__mode=Mode.RANKED.value, evaluations__status=Status.FINISHED) & ~Q(
        evaluations__submission__origin__in=NOT_ENTERED
    )
    rows = (
        task.versions.filter(Q(published_at__isnull=False) | Q(pk=current.pk))
        .annotate(entered=Count("evaluations__submission", filter=ended, distinct=True))
        .filter(entered__gt=0)
        .defer("document")
    )
    found = [(version, version.entered) for version in rows]
    return sorted(
        found,
        key=lambda pair: (
            pair[0].pk == current.pk, pair[0].number > current.number, -pair[0].number
        ),
    )  # fmt: skip


def devices_with_results(version: TaskVersion) -> list[Device]:
    """Devices on which something of the version was ranked."""
    ended = _ended(version).order_by().values("device_id")
    return list(Device.objects.filter(pk__in=ended).order_by("slug"))


def changes_between(source: TaskVersion, target: TaskVersion) -> list[Change]:
    """What makes kernels of one version fail to compile, or to be called, on the other."""
    found = []
    if source.abi != target.abi:
        found.append(Change(name="ABI", before=source.abi, after=target.abi))
    if source.dtype != target.dtype:
        found.append(Change(name="dtype", before=source.dtype, after=target.dtype))
    after = {each.direction: each.declaration for each in entrances(target.data)}
    for each in entrances(source.data):
        declaration = after.get(each.direction)
        if declaration is not None and declaration != each.declaration:
            name = f"{each.direction} signature"
            found.append(Change(name=name, before=each.declaration, after=declaration))
    return found


def with_names(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """With what tables show of them, and without the long texts."""
    return rows.select_related(
        "device", "submission__author", "submission__agent", "submission__language_model"
    ).defer("submission__source", "reason")


def best_of_agents(rows: Iterable[Evaluation]) -> dict[Board, tuple[Evaluation, ...]]:
    """Eligible evaluations as boards order them: the fastest of each author and agent.

    By speedup and then by time; what has no speedup comes last. `rows` are of one version.
    """
    best: dict[tuple[Board, int, int], Evaluation] = {}
    for row in rows:
        key = (board_of(row), row.submission.author_id, row.submission.agent_id)
        held = best.get(key)
        if held is None or (row.latency_ns or 0.0, row.pk) < (held.latency_ns or 0.0, held.pk):
            best[key] = row
    boards: dict[Board, list[Evaluation]] = {}
    for (board, _, _), row in sorted(best.items(), key=lambda pair: (pair[0][0], order(pair[1]))):
        boards.setdefault(board, []).append(row)
    return {board: tuple(found) for board, found in boards.items()}


def order(row: Evaluation) -> tuple[float, float, str]:
    """Sorts evaluations as boards do."""
    return (-(row.speedup_best or 0.0), row.latency_ns or float("inf"), str(row.pk))


def board_of(evaluation: Evaluation) -> Board:
    """The board on which it has its place, or would have."""
    return Board(evaluation.device_id, evaluation.direction)


def key_of(submission: Submission) -> Key:
    """What makes it the same entry as another."""
    return Key(submission.author_id, submission.agent_id, submission.digest)


def latest_ranked(
    version: TaskVersion, devices: Iterable[str], before: datetime | None = None
) -> dict[tuple[UUID, str], Evaluation]:
    """The latest finished ranked evaluation of each submission and device.

    A SYSTEM_ERROR says nothing, so that it never replaces another. With `before`, of those that
    had ended by then.
    """
    rows = with_names(_ended(version).filter(device__in=list(devices)))
    rows = rows if before is None else rows.filter(finished_at__lte=before)
    latest: dict[tuple[UUID, str], Evaluation] = {}
    for row in rows.order_by("created_at", "pk"):
        place = (row.submission_id, row.device_id)
        if place not in latest or row.verdict != Verdict.SYSTEM_ERROR:
            latest[place] = row
    return latest


def _ended(version: TaskVersion) -> QuerySet[Evaluation]:
    """What was entered and ranked."""
    return Evaluation.objects.filter(
        task_version=version, mode=Mode.RANKED.value, status=Status.FINISHED
    ).exclude(submission__origin__in=NOT_ENTERED)

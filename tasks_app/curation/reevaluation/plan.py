"""What having submissions evaluated again comes to, before anything is queued."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from django.conf import settings

from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import DeviceKind, Direction, Mode, Verdict
from runs_app.integrity.eligibility import eligible_on, without_doubts
from runs_app.models import Evaluation, Status, Submission
from tasks_app.curation.reevaluation.selectors import (
    Board,
    Choice,
    Key,
    What,
    best_of_agents,
    board_of,
    key_of,
    latest_ranked,
    order,
    with_names,
)
from tasks_app.models import TaskVersion

MOST_AT_ONCE = 1000
"""Submissions that one request has evaluated again; the next one goes on with the others."""


class Fate(StrEnum):
    """What becomes of a submission on the current version."""

    NEW = "new"  # entered there, and evaluated
    AGAIN = "again"  # entered there before; evaluated
    UNDER_WAY = "under way"  # its evaluation there waits or runs
    DONE = "done"  # evaluated there before
    TWICE = "twice"  # the same source of the same author and agent is chosen already
    REFUSED = "refused"  # it cannot be evaluated there
    LATER = "later"  # more are chosen than go at once


QUEUED = (Fate.NEW, Fate.AGAIN)
FATE_WORDS = {
    Fate.NEW: "to be entered and evaluated",
    Fate.AGAIN: "to be evaluated, entered there before",
    Fate.UNDER_WAY: "under way already",
    Fate.DONE: "evaluated there already",
    Fate.TWICE: "the same source as another chosen one",
    Fate.REFUSED: "cannot be evaluated there",
    Fate.LATER: f"not at once: more than {MOST_AT_ONCE:,} are chosen",
}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A chosen submission on a device, with its ranked evaluation on the earlier version.

    `entry` is the submission on the current version that there is already.
    """

    evaluation: Evaluation
    fate: Fate
    reason: str = ""
    entry: UUID | None = None

    @property
    def words(self) -> str:
        """What becomes of it, and why."""
        said = FATE_WORDS[self.fate]
        return f"{said}: {self.reason}" if self.reason else said


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that a choice comes to; `shipped` counts the target's own kernels that come along."""

    choice: Choice
    planned: tuple[Planned, ...]
    boards: Mapping[Board, tuple[Evaluation, ...]]
    shipped: Mapping[str, int]

    @property
    def queued(self) -> tuple[Planned, ...]:
        """Those that get an evaluation."""
        return tuple(each for each in self.planned if each.fate in QUEUED)

    @property
    def count(self) -> int:
        """Evaluations that are queued, with those of shipped kernels."""
        return len(self.queued) + sum(self.shipped.values())


def plan_of(choice: Choice) -> Plan:
    """What `choice` comes to now."""
    slugs = [device.slug for device in choice.devices]
    eligible = with_names(eligible_on(choice.source).filter(device__in=slugs))
    boards = best_of_agents(eligible)
    planned = _fates(choice, _chosen(choice, boards))
    bring = settings.SUBMIT_SHIPPED_KERNELS and not choice.same
    return Plan(
        choice=choice,
        planned=planned,
        boards=boards,
        shipped=_shipped(choice, planned) if bring else {},
    )


def _chosen(choice: Choice, boards: Mapping[Board, tuple[Evaluation, ...]]) -> list[Evaluation]:
    """The chosen evaluations: places on boards first, best first, then what is on no board."""
    if choice.what in (What.BEST, What.TOP):
        end = choice.top if choice.what is What.TOP else None
        return [row for rows in boards.values() for row in rows[:end]]
    first = [row for rows in boards.values() for row in rows]
    held = {row.pk for row in first}
    others = [
        row
        for row in latest_ranked(choice.source, (d.slug for d in choice.devices)).values()
        if row.pk not in held
    ]
    if choice.what is What.CORRECT:
        rows = Evaluation.objects.filter(task_version=choice.source, mode=Mode.RANKED.value)
        correct = without_doubts(rows).filter(verdict=Verdict.CORRECT.value)
        known = set(correct.values_list("pk", flat=True))
        others = [row for row in others if row.pk in known]
    others.sort(key=lambda row: (row.submission.private, board_of(row), order(row)))
    return first + others


def _fates(choice: Choice, chosen: list[Evaluation]) -> tuple[Planned, ...]:
    there = _Entries(choice.target)
    seen: set[tuple[Key, str]] = set()
    planned = []
    queued = 0
    for row in chosen:
        each = _fate(choice, row, there)
        entry = (key_of(row.submission), row.device_id)
        if not choice.same and entry in seen:
            each = replace(each, fate=Fate.TWICE, reason="")
        seen.add(entry)
        if each.fate in QUEUED:
            queued += 1
            each = replace(each, fate=Fate.LATER) if queued > MOST_AT_ONCE else each
        planned.append(each)
    return tuple(planned)


def _fate(choice: Choice, row: Evaluation, there: _Entries) -> Planned:
    submission = row.submission
    refusal = _refusal(choice.target, row)
    if refusal:
        return Planned(evaluation=row, fate=Fate.REFUSED, reason=refusal)
    if choice.same:
        under_way = (submission.pk, row.device_id) in there.under_way
        fate = Fate.UNDER_WAY if under_way else Fate.AGAIN
        return Planned(evaluation=row, fate=fate, entry=submission.pk)
    entries = there.entries(submission)
    places = {(entry, row.device_id) for entry in entries}
    if places & there.under_way:
        return Planned(evaluation=row, fate=Fate.UNDER_WAY)
    if places & there.done:
        return Planned(evaluation=row, fate=Fate.DONE)
    if entries:
        return Planned(evaluation=row, fate=Fate.AGAIN, entry=entries[0])
    return Planned(evaluation=row, fate=Fate.NEW)


def _refusal(target: TaskVersion, row: Evaluation) -> str:
    """Why it cannot be evaluated on the version; empty if it can be tried."""
    if row.direction not in target.directions:
        return f"version {target.number} has no {row.direction} direction"
    if row.device.language.value != row.submission.language:
        return f"{row.device_id} runs {row.device.language.value}, not {row.submission.language}"
    kind, direction = DeviceKind(row.device.kind), Direction(row.direction)
    if not target.data.workloads_for(kind, direction, hidden=False):
        return f"version {target.number} has no {row.direction} workload for {row.device_id}"
    return ""


class _Entries:
    """What is entered for a version, and what of it was evaluated where."""

    def __init__(self, version: TaskVersion) -> None:
        """Read it, the oldest entry first."""
        of_a_run = Submission.Origin.RUN
        entered = Submission.objects.filter(task_version=version).exclude(origin=of_a_run)
        self._entries: dict[tuple[Key, bool], list[UUID]] = {}
        columns = ("author_id", "agent_id", "digest", "private", "pk")
        for author, agent, digest, private, pk in entered.order_by("created_at", "pk").values_list(
            *columns
        ):
            self._entries.setdefault((Key(author, agent, digest), private), []).append(pk)
        ranked = Evaluation.objects.filter(task_version=version, mode=Mode.RANKED.value)
        ranked = ranked.exclude(submission__origin=of_a_run)
        waiting = ranked.filter(status__in=(Status.QUEUED, Status.RUNNING))
        ended = ranked.filter(status=Status.FINISHED).exclude(verdict=Verdict.SYSTEM_ERROR.value)
        self.under_way = set(waiting.values_list("submission_id", "device_id"))
        self.done = set(ended.values_list("submission_id", "device_id"))

    def entries(self, submission: Submission) -> list[UUID]:
        """The same source of the same author and agent; a private one is no public entry."""
        key = key_of(submission)
        public = self._entries.get((key, False), [])
        return public + (self._entries.get((key, True), []) if submission.private else [])


def _shipped(choice: Choice, planned: Iterable[Planned]) -> dict[str, int]:
    """By device, how many of the target's own kernels come along that are not among `planned`."""
    target = choice.target
    come = {
        (row.submission.agent.name, row.submission.digest, row.device_id)
        for row in (each.evaluation for each in planned if each.fate in QUEUED)
    }
    known = Evaluation.objects.filter(task_version=target, mode=Mode.RANKED.value)
    known = known.exclude(status=Status.CANCELLED).exclude(verdict=Verdict.SYSTEM_ERROR.value)
    columns = ("submission__agent__name", "submission__digest", "device_id")
    come |= set(known.filter(submission__agent__kind="shipped").values_list(*columns))
    counts: dict[str, int] = {}
    for kernel in target.data.kernels:
        source = target.data.files[kernel.path]
        solution = Solution(source=source, language=kernel.language, direction=kernel.direction)
        for device in choice.devices:
            place = (kernel.agent, solution.digest(), device.slug)
            if device.language is kernel.language and place not in come:
                come.add(place)
                counts[device.slug] = counts.get(device.slug, 0) + 1
    return counts

"""What the pages of curators show: all tasks, and what waits for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.paginator import Page
from django.db.models import Count, Q, QuerySet

from runs_app.features.curation.decisions import services as curation
from runs_app.features.curation.decisions.many import Bulk, Outcome
from runs_app.models import Device
from tasks_app import selectors
from tasks_app.errors import CurationError
from tasks_app.models import Draft, Override, Soundness, Task, TaskVersion
from tasks_app.pages.audit_page import AuditLine
from tasks_app.parameters import Choice

FILTERS = ("q", "state", "scenario", "tag", "difficulty", "contaminated", "soundness")
UNSET = "none"
"""Chooses tasks without a difficulty."""

SOUNDNESS = {
    "passed": "Sound",
    "failed": "Fails",
    "none": "No report",
    "override": "Public by decision",
}
"""What is known of a version. By decision: an admin said why it may be public without a proof."""

_SHOWN_DRAFTS = 10


@dataclass(frozen=True, kw_only=True)
class CurateRow:
    """A task as its curators see it; `drafts` counts those that are open or in review.

    version: the current one; while there is none, that of the draft that would be the first.
    soundness, device: what is known of that version.
    """

    task: Task
    version: TaskVersion | None
    soundness: str
    device: str
    drafts: int

    @property
    def soundness_words(self) -> str:
        """The key of `SOUNDNESS` in words."""
        return SOUNDNESS[self.soundness]

    def value(self, name: str) -> tuple[str, ...]:
        """What the filter `name` compares with."""
        if name == "tag":
            return tuple(self.task.tags)
        if name == "difficulty":
            return (self.task.difficulty or UNSET,)
        if name == "contaminated":
            return ("yes" if self.task.contaminated else "no",)
        if name == "soundness":
            return (self.soundness,)
        return (str(getattr(self.task, name)),)


@dataclass(frozen=True, kw_only=True)
class VersionRow:
    """A version as its curators see it; `refusal` says why it cannot be made public."""

    version: TaskVersion
    refusal: str
    is_in_review: bool


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What waits for a decision; of the drafts the first few are listed."""

    review: int
    review_drafts: tuple[Draft, ...]
    open_count: int
    open_drafts: tuple[Draft, ...]
    without_report: int
    refused: int

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to decide."""
        return not (self.review or self.open_count or self.without_report or self.refused)


@dataclass(frozen=True, kw_only=True)
class CuratePage:
    """What waits, and all tasks that fit the filters; `fragment` if the table alone is shown."""

    page: Page[CurateRow]
    total: int
    filters: Mapping[str, str]
    address: str
    choices: Sequence[Choice]
    waiting: Waiting
    actions: Sequence[tuple[str, str]]
    devices: QuerySet[Device]
    difficulties: Sequence[tuple[str, str]]
    checks: Mapping[int, str]
    failed: Mapping[int, str]
    fragment: bool = False
    selected: Collection[str] = ()  # names of tasks
    error: CurationError | None = None  # why nothing was done
    values: Mapping[str, str] | None = None  # of the form then


@dataclass(frozen=True, kw_only=True)
class ConfirmPage:
    """What a decision about many tasks would change; `words` say so as an order and as done."""

    bulk: Bulk
    words: tuple[str, str]
    back: str
    outcomes: Sequence[Outcome]
    changing: Sequence[Task]
    staying: Sequence[Outcome]


@dataclass(frozen=True, kw_only=True)
class TaskCuratePage:
    """One task, its versions, its drafts, and what was done to it."""

    task: Task
    current: VersionRow | None
    versions: Sequence[VersionRow]
    under_way: QuerySet[Draft]
    past_drafts: QuerySet[Draft]
    entries: Sequence[AuditLine]
    in_use: bool
    checks: Mapping[int, str]
    failed: Mapping[int, str]
    error: CurationError | None = None  # why nothing was done
    values: Mapping[str, str] | None = None  # of the form then


def all_rows() -> list[CurateRow]:
    """Every task, by name; the documents of versions stay in the database."""
    under_way = Count("drafts", filter=Q(drafts__state__in=Draft.UNDER_WAY))
    tasks = (
        Task.objects.select_related("current_version")
        .defer("current_version__document")
        .annotate(under_way=under_way)
        .order_by("slug")
    )
    reports: dict[int, list[Soundness]] = {}
    for report in Soundness.objects.defer("document"):
        reports.setdefault(report.version_id, []).append(report)
    newest = {
        override.version_id: override.created_at
        for override in Override.objects.order_by("created_at", "pk")
    }
    new = selectors.drafts_of_new(tasks)
    rows = []
    for task in tasks:
        version = new[task.pk].version if task.pk in new else task.current_version
        key = version.pk if version else 0
        rows.append(_row(task, version, reports.get(key, []), newest.get(key)))
    return rows


def _row(
    task: Any,
    version: TaskVersion | None,
    reports: Sequence[Soundness],
    overridden: datetime | None,
) -> CurateRow:
    """`task` is annotated by `all_rows`; of `reports` the first decides, as in a version's."""
    decisive = next(iter(reports), None)
    answered = decisive is None or (overridden is not None and overridden >= decisive.created_at)
    if decisive is not None and decisive.passed:
        state = "passed"
    elif overridden is not None and answered:
        state = "override"
    else:
        state = "none" if decisive is None else "failed"
    shown = [each.device for each in reports if decisive and each.passed == decisive.passed]
    device = ", ".join(shown)
    return CurateRow(
        task=task, version=version, soundness=state, device=device, drafts=task.under_way
    )


def chosen(rows: Iterable[CurateRow], filters: Mapping[str, str]) -> list[CurateRow]:
    """The rows that fit all filters."""
    return [row for row in rows if _fits(row, filters)]


def _fits(row: CurateRow, filters: Mapping[str, str]) -> bool:
    exact = (name for name in FILTERS if name != "q" and filters[name])
    if any(filters[name] not in row.value(name) for name in exact):
        return False
    text = f"{row.task.slug} {row.task.title}".lower()
    return all(word in text for word in filters["q"].lower().split())


def choices(rows: Sequence[CurateRow], filters: Mapping[str, str]) -> list[Choice]:
    """The filters with what they can be set to."""
    scenarios = sorted({row.task.scenario for row in rows})
    tags = sorted({tag for row in rows for tag in row.task.tags})
    options: dict[str, tuple[tuple[str, str], ...]] = {
        "state": tuple(Task.State.choices),
        "scenario": tuple((name, name) for name in scenarios),
        "tag": tuple((name, name) for name in tags),
        "difficulty": (*Task.Difficulty.choices, (UNSET, "Not set")),
        "contaminated": (("yes", "Yes"), ("no", "No")),
        "soundness": tuple(SOUNDNESS.items()),
    }
    return [
        Choice(name=name, label=name.capitalize(), value=filters[name], options=options[name])
        for name in FILTERS
        if name != "q"
    ]


def light_drafts(drafts: QuerySet[Draft]) -> QuerySet[Draft]:
    """Drafts with those who write them and their versions, without the texts of either."""
    related = drafts.select_related("author", "taken_by", "version")
    return related.defer("files", "version__document")


def waiting(rows: Iterable[CurateRow]) -> Waiting:
    """What waits for an admin: drafts in review, open ones of others, tasks not proven sound."""
    drafts = light_drafts(Draft.objects.all())
    review = drafts.filter(state=Draft.State.REVIEW).order_by("changed_at")
    open_drafts = drafts.filter(
        state=Draft.State.OPEN, author__is_staff=False, taken_by__isnull=True
    ).order_by("-changed_at")
    stuck = [
        row.soundness
        for row in rows
        if row.task.state == Task.State.REVIEW and row.version is not None
    ]
    return Waiting(
        review=review.count(),
        review_drafts=tuple(review[:_SHOWN_DRAFTS]),
        open_count=open_drafts.count(),
        open_drafts=tuple(open_drafts[:_SHOWN_DRAFTS]),
        without_report=stuck.count("none"),
        refused=stuck.count("failed"),
    )


def version_rows(task: Task) -> list[VersionRow]:
    """All versions of a task, newest first, be they public or not."""
    versions = (
        task.versions.defer("document")
        .select_related("task")
        .prefetch_related("overrides__decided_by", "reports")
        .order_by("-number")
    )
    review = selectors.versions_in_review(task)
    return [
        VersionRow(
            version=version,
            refusal=curation.public_refusal(task, version),
            is_in_review=version.pk in review,
        )
        for version in versions
    ]

"""The list of published tasks, and what it can be filtered by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tasks_app import selectors
from tasks_app.errors import FieldError
from tasks_app.models import Task, TaskVersion
from tasks_app.selectors import Outline, outlines

FILTERS = ("scenario", "difficulty", "tag", "abi", "direction", "dtype")
"""Filters by an exact value; besides them there is "q", words of the name and the text."""

_LONGEST = 100


class FilterError(FieldError):
    """A filter has a value that no task has."""


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """A task in the list."""

    task: Task
    version: TaskVersion
    outline: Outline

    def value(self, name: str) -> tuple[str, ...]:
        """What the filter `name` compares with."""
        if name == "direction":
            return self.outline.directions
        if name == "tag":
            return tuple(self.task.tags)
        if name == "difficulty":
            return (self.task.difficulty,) if self.task.difficulty else ()
        if name == "scenario":
            return (self.task.scenario,)
        return (str(getattr(self.version, name)),)


def task_rows() -> list[TaskRow]:
    """All published tasks, by name."""
    tasks = list(selectors.published_tasks().defer("current_version__document"))
    versions = [(task, task.current_version) for task in tasks if task.current_version]
    known = outlines(version.digest for _, version in versions)
    return [
        TaskRow(task=task, version=version, outline=known[version.digest])
        for task, version in versions
    ]


def read_filters(values: Mapping[str, str]) -> dict[str, str]:
    """All filters, as they stand in an address; empty where it names none."""
    return {name: values.get(name, "").strip()[:_LONGEST] for name in ("q", *FILTERS)}


def chosen(rows: Iterable[TaskRow], filters: Mapping[str, str]) -> list[TaskRow]:
    """The rows that fit all filters."""
    return [row for row in rows if _fits(row, filters)]


def nearest(rows: Iterable[TaskRow], question: str) -> list[TaskRow]:
    """The same rows, those first whose names are closest to what was searched for."""
    return sorted(rows, key=lambda row: distance(question, row.task.slug, row.task.title))


def distance(question: str, name: str, title: str) -> int:
    """How far a task is from what was searched for; 0 if that is its name."""
    asked, words = question.strip().lower(), question.lower().split()
    ladder = (
        asked in (name.lower(), title.lower()),
        name.lower().startswith(asked) or title.lower().startswith(asked),
        all(word in f"{name} {title}".lower() for word in words),
    )
    return next((step for step, holds in enumerate(ladder) if holds), len(ladder))


def options(name: str, rows: Iterable[TaskRow]) -> list[str]:
    """The values of a filter that some task has; difficulties from easy to hard."""
    found = {option for row in rows for option in row.value(name)}
    if name == "difficulty":
        return [value for value in Task.Difficulty.values if value in found]
    return sorted(found)


def check_filters(rows: Sequence[TaskRow], filters: Mapping[str, str]) -> None:
    """Raises `FilterError` on a value that no task has."""
    for name in FILTERS:
        known = options(name, rows)
        if filters[name] and filters[name] not in known:
            words = ", ".join(known) or "none yet"
            raise FilterError(name, f"no task has the {name} {filters[name]!r}; known: {words}")


def _fits(row: TaskRow, filters: Mapping[str, str]) -> bool:
    if any(filters[name] and filters[name] not in row.value(name) for name in FILTERS):
        return False
    words = filters["q"].lower().split()
    text = f"{row.task.slug} {row.task.title} {row.outline.description}".lower()
    return all(word in text for word in words)

"""What a board shows, as it stands in the address."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from urllib.parse import urlencode

from leaderboard_app.boards.ranking import THRESHOLDS, Owner, Sort

_LONGEST = 100
_MOST_NAMED = 20


class By(StrEnum):
    """What a row of the board stands for."""

    SUBMISSION = "submission"
    AGENT = "agent"
    MODEL = "model"

    @property
    def owner(self) -> Owner:
        """The name under which this board puts results together."""
        if self is By.MODEL:
            return lambda author: author.language_model
        return lambda author: author.agent

    @property
    def sorts(self) -> tuple[Sort, ...]:
        """Orders that make sense for these rows."""
        if self is By.SUBMISSION:
            return (Sort.SPEEDUP, Sort.LATENCY, Sort.SCORE, Sort.FLOOR)
        return (Sort.FAST, Sort.SPEEDUP, Sort.CORRECT, Sort.SCORE, Sort.FLOOR)


class QueryError(ValueError):
    """A parameter cannot be used; `field` names it."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which results a board shows, how it groups and how it orders them. Empty means any."""

    by: By = By.SUBMISSION
    device: str
    task: str = ""
    scenario: str = ""
    dtype: str = ""
    direction: str = ""
    p: float = 1.0
    sort: Sort = Sort.SPEEDUP
    verified: bool = False  # only what passed an audit
    contaminated: bool = False  # with tasks that count in no figure over tasks

    @property
    def counts_all(self) -> bool:
        """Whether contaminated tasks count: asked for, or the board is about a single task."""
        return self.contaminated or bool(self.task)

    def address(self, **changes: object) -> str:
        """The query string of this board with some parameters changed; defaults are left out.

        Changing `by` or `task` drops the order, which may make no sense there.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        if {"by", "task"} & set(changes) and "sort" not in changes:
            values["sort"] = default_sort(By(str(values["by"])), str(values["task"]))
        usual = {"by": By.SUBMISSION, "p": 1.0, "verified": False, "contaminated": False} | {
            "sort": default_sort(By(str(values["by"])), str(values["task"]))
        }
        shown = {
            name: f"{value:g}" if isinstance(value, float | bool) else str(value)
            for name, value in values.items()
            if value != "" and value != usual.get(name)
        }
        return urlencode(shown)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Values that the filters accept, because tasks or devices have them."""

    devices: tuple[str, ...]
    tasks: tuple[str, ...]
    scenarios: tuple[str, ...]
    dtypes: tuple[str, ...]
    directions: tuple[str, ...]


def default_sort(by: By, task: str) -> Sort:
    """The order of a board that names none."""
    return Sort.SPEEDUP if by is By.SUBMISSION or task else Sort.FAST


def parse_query(
    values: Mapping[str, str], choices: Choices, default_device: Callable[[], str]
) -> Query:
    """The board that `values` ask for; raises `QueryError` on a value that means nothing.

    `default_device` is asked only where they name no device.
    """
    by = By(_one_of(values, "by", [by.value for by in By], By.SUBMISSION.value))
    task = _one_of(values, "task", choices.tasks)
    sort = _one_of(values, "sort", [s.value for s in by.sorts], default_sort(by, task).value)
    return Query(
        by=by,
        device=_one_of(values, "device", choices.devices) or default_device(),
        task=task,
        scenario=_one_of(values, "scenario", choices.scenarios),
        dtype=_one_of(values, "dtype", choices.dtypes),
        direction=_one_of(values, "direction", choices.directions),
        p=_threshold(values),
        sort=Sort(sort),
        verified=_flag(values, "verified"),
        contaminated=_flag(values, "contaminated"),
    )


def _one_of(
    values: Mapping[str, str], name: str, allowed: Collection[str], default: str = ""
) -> str:
    value = values.get(name, "").strip()[:_LONGEST]
    if not value:
        return default
    if value not in allowed:
        reason = f"there is no {name} {value!r} on the board; {_hint(value, allowed)}"
        raise QueryError(name, reason)
    return value


def _hint(value: str, allowed: Collection[str]) -> str:
    """What could have been meant: all, or where they are too many the names most like it."""
    if len(allowed) <= _MOST_NAMED:
        return f"known: {', '.join(allowed) or 'none yet'}"
    near = difflib.get_close_matches(value, allowed)
    return f"like it: {', '.join(near)}" if near else f"it has {len(allowed)}, none of a like name"


def _flag(values: Mapping[str, str], name: str) -> bool:
    text = values.get(name, "").strip().lower()
    if text not in ("", "0", "false", "1", "true"):
        raise QueryError(name, f"{text[:_LONGEST]!r} is not one of 1, 0, true, false")
    return text in ("1", "true")


def _threshold(values: Mapping[str, str]) -> float:
    text = values.get("p", "").strip() or "1"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= max(THRESHOLDS) * 2:
        raise QueryError("p", f"{text[:_LONGEST]!r} is not a number from 0 to 16")
    return value

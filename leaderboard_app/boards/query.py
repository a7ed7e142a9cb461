"""What a board shows, as it stands in the address."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from urllib.parse import urlencode

from leaderboard_app.boards.groups import Over
from leaderboard_app.boards.ranking import THRESHOLDS, Owner, Sort
from tasks_app.errors import FieldError
from tasks_app.parameters import named_like

_LONGEST = 100
_LONGEST_NAME = 150
_FIRST_DAY, _LAST_DAY = date(2000, 1, 1), date(2999, 12, 31)
FLAGS = ("verified", "trusted", "same_bits", "batch_bits", "graph", "contaminated")


class By(StrEnum):
    """What a row of the board stands for; of a matrix, a cell is one agent's best of a problem."""

    LEADERS = "leaders"
    MATRIX = "matrix"
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
        if self is By.LEADERS:
            return (Sort.SCORE, Sort.NEWEST, Sort.TASK, Sort.FLOOR)
        if self is By.MATRIX:
            return (Sort.TASK,)
        if self is By.SUBMISSION:
            return (Sort.SCORE, Sort.SPEEDUP, Sort.LATENCY, Sort.P, Sort.FLOOR)
        return (Sort.FAST, Sort.SCORE, Sort.SPEEDUP, Sort.CORRECT, Sort.P, Sort.FLOOR)

    @property
    def is_grouped(self) -> bool:
        """Whether a row stands for many results of one name."""
        return self in (By.AGENT, By.MODEL)


class QueryError(FieldError):
    """A parameter cannot be used."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which results a board shows, how it groups and how it orders them. Empty means any."""

    by: By = By.SUBMISSION
    over: Over = Over.COMMON
    device: str
    task: str = ""
    scenario: str = ""
    dtype: str = ""
    direction: str = ""
    who: str = ""  # one of `Agent.Kind`
    agent: str = ""
    model: str = ""
    since: date | None = None  # of the result's end, in UTC, both days included
    until: date | None = None
    p: float = 1.0
    sort: Sort = Sort.SCORE
    verified: bool = False  # only what passed an audit
    trusted: bool = False  # only what runners measured that the site's admins control
    same_bits: bool = False  # only what gave the same bits for the same input, by its audit
    batch_bits: bool = False  # only what gave them in a smaller batch, likewise
    graph: bool = False  # only what works in a CUDA graph, likewise
    contaminated: bool = False  # with tasks that count in no figure over tasks

    @property
    def facts(self) -> dict[str, bool]:
        """What a result's audit must have told."""
        return {name: True for name in ("same_bits", "batch_bits", "graph") if getattr(self, name)}

    @property
    def is_narrow(self) -> bool:
        """Whether few results are left for reasons of which tallies know nothing."""
        return self.verified or self.trusted or bool(self.facts)

    @property
    def counts_all(self) -> bool:
        """Whether contaminated tasks count: asked for, or the board is about a single task."""
        return self.contaminated or bool(self.task)

    def address(self, **changes: object) -> str:
        """The query string of this board with some parameters changed; defaults are left out.

        Changing `by` or `task` drops the order, which may make no sense there.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        by, task = By(str(values["by"])), str(values["task"])
        if {"by", "task"} & set(changes) and "sort" not in changes:
            values["sort"] = default_sort(by, task)
        usual = {
            "by": default_by(task, str(values["agent"]), str(values["model"])),
            "over": Over.COMMON,
            "p": 1.0,
            **dict.fromkeys(FLAGS, False),
            "sort": default_sort(by, task),
        }
        shown = {
            name: f"{value:g}" if isinstance(value, float | bool) else str(value)
            for name, value in values.items()
            if value not in ("", None) and value != usual.get(name)
        }
        return urlencode(shown)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Values that the filters accept, because tasks or devices have them."""

    devices: tuple[str, ...]
    tasks: Mapping[str, tuple[str, ...]]  # by each, its `parted` directions
    scenarios: tuple[str, ...]
    dtypes: tuple[str, ...]
    directions: tuple[str, ...]
    kinds: tuple[str, ...] = ()


def default_by(task: str, agent: str = "", model: str = "") -> By:
    """The board of an address that names none: entries of something chosen, else leaders."""
    return By.SUBMISSION if task or agent or model else By.LEADERS


def parted(directions: Collection[str]) -> tuple[str, ...]:
    """Directions that each have a board, as their kernels don't compete; none if there is one."""
    return tuple(sorted(directions, reverse=True)) if len(directions) > 1 else ()


def default_sort(by: By, task: str) -> Sort:
    """The order of a board that names none."""
    if by is By.MATRIX:
        return Sort.TASK
    return Sort.FAST if by.is_grouped and not task else Sort.SCORE


def parse_query(
    values: Mapping[str, str], choices: Choices, default_device: Callable[[str], str]
) -> Query:
    """The board that `values` ask for; raises `QueryError` on a value that means nothing.

    `default_device` is asked, with the task, only where they name no device.
    """
    task = _one_of(values, "task", choices.tasks)
    agent, model = _name(values, "agent"), _name(values, "model")
    usual = default_by(task, agent, model)
    by = By(_one_of(values, "by", [by.value for by in By], usual.value))
    directions = choices.tasks.get(task, ()) if by is By.SUBMISSION else ()
    sort = _one_of(values, "sort", [s.value for s in by.sorts], default_sort(by, task).value)
    since, until = _day(values, "since"), _day(values, "until")
    if since and until and until < since:
        raise QueryError("until", f"{until} is before the `since` date, {since}")
    return Query(
        by=by,
        over=Over(_one_of(values, "over", [over.value for over in Over], Over.COMMON.value)),
        who=_one_of(values, "who", choices.kinds),
        agent=agent,
        model=model,
        since=since,
        until=until,
        device=_one_of(values, "device", choices.devices) or default_device(task),
        task=task,
        scenario=_one_of(values, "scenario", choices.scenarios),
        dtype=_one_of(values, "dtype", choices.dtypes),
        direction=_one_of(values, "direction", choices.directions, next(iter(directions), "")),
        p=_threshold(values),
        sort=Sort(sort),
        **{name: _flag(values, name) for name in FLAGS},
    )


def _one_of(
    values: Mapping[str, str], name: str, allowed: Collection[str], default: str = ""
) -> str:
    value = values.get(name, "").strip()[:_LONGEST]
    if not value:
        return default
    if value not in allowed:
        raise QueryError(name, f"unknown {name} {value!r}; {named_like(value, allowed)}")
    return value


def _name(values: Mapping[str, str], name: str) -> str:
    """A name that anybody may have given; one that nobody has finds nothing."""
    value = values.get(name, "").strip()
    if len(value) > _LONGEST_NAME or not value.isprintable():
        raise QueryError(name, f"is not a name of at most {_LONGEST_NAME} characters")
    return value


def _day(values: Mapping[str, str], name: str) -> date | None:
    text = values.get(name, "").strip()
    if not text:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise QueryError(name, f"{text[:_LONGEST]!r} is not a date such as 2026-11-25") from None
    if not _FIRST_DAY <= found <= _LAST_DAY:
        raise QueryError(name, f"{found} is not between {_FIRST_DAY} and {_LAST_DAY}")
    return found


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

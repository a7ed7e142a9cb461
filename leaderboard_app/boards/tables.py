"""Declares the columns of each board: what they hold, and how the page, files and API show it.

Files and the API list the columns in the order of this module. On the page, `after` can move one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from operator import attrgetter

from leaderboard_app.boards.query import By
from leaderboard_app.boards.ranking import Sort
from tasks_app.columns import BOUNDS, MIDDLE, Column, Table
from tasks_app.numbers import percent
from tasks_app.templatetags.display import ago, duration, ratio, short

_CELLS = "leaderboard_app/boards/cells/"
_AGAINST = _CELLS + "against.html"
_NUMBER, _TEXT = float | None, str | None


_PLACE = (
    Column("rank", int | None, "Rank", _CELLS + "rank.html", value=lambda row: row.rank or None,
           classes="n at-rank", help="Null if the row has no value for the board's sort order."),
    Column("tied", bool, help="Whether another row has the same rank."),
)  # fmt: skip


def _score_head(page: Mapping[str, object]) -> str:
    """What boards rank by: without any score, the column has the speedups on listed sizes."""
    return "Score" if page.get("has_scores", True) else "Speedup"


_COMPARED_WITH = Column(
    "compared_with", str,
    help="The baseline that score, speedup_best, unlisted_speedup and p_score are relative to:"
    " `best` (the fastest of all); if some are still missing, the names of those measured so"
    " far, such as `eager`; or empty.",
)  # fmt: skip
_SPEEDS = (
    Column("score", BOUNDS, _score_head, _CELLS + "score.html", value="score", sort=Sort.SCORE,
           term="score", classes="n at-end",
           help="Geometric mean of the speedups over the best baseline on listed and on unlisted"
           " sizes, with equal weight."),
    Column("speedup_best", BOUNDS, "Listed", _AGAINST, value="speedup", sort=Sort.SPEEDUP,
           when=lambda page: page.get("has_scores", True),
           help="Speedup over the best baseline on listed sizes."),
    _COMPARED_WITH,
    Column("unlisted_speedup", _NUMBER, "Unlisted", _CELLS + "unlisted.html",
           help="Speedup over the best baseline on unlisted sizes."),
    Column("speedup_eager", MIDDLE, "vs eager", _AGAINST, value="eager"),
    Column("speedup_compiled", MIDDLE, "vs compiled", _AGAINST, value="compiled"),
    Column("p_score", _NUMBER, "P", ratio, term="P score", sort=Sort.P),
    Column("floor_fraction", _NUMBER, "Of limit", percent, term="of limit", sort=Sort.FLOOR,
           help="Share of the physical limit that the kernel reached."),
    Column("listed_ratio", _NUMBER,
           help="Speedup on listed sizes divided by speedup on unlisted sizes."),
)  # fmt: skip
"""Columns of an entry; a name has them as means over its entries."""
_ENTRY = (
    Column("task", str, "Task", _CELLS + "task.html", value="problem.task", classes="at-top",
           when=lambda page: not page["query"].task),
    Column("direction", value="problem.direction"),
    Column("device"),
    Column("agent", str, "By", _CELLS + "by.html", value="author.agent", is_name=True),
    Column("kind", value="author.kind", help="agent, person or shipped"),
    Column("language_model", value="author.language_model", help="Empty if none was entered."),
    Column("submitter", value="author.submitter"),
    Column("latency_ns", BOUNDS, "Time", _CELLS + "time.html", value="latency",
           is_always=True, sort=Sort.LATENCY, direction="ascending", classes="n at-last",
           after="score"),
    *_SPEEDS,
    Column("ranked_by", str, value=lambda entry: "score" if entry.merit > 0 else "time",
           help="score, or time if there is no score over all baselines"),
    Column("state", str, "State", _CELLS + "state.html", value="state.name", classes="at-state",
           after="agent",
           help="provisional, ranked, verified, or tuned (to the listed sizes)"),
    Column("audited", help="What audits say about the submission."),
    Column("verified", bool, help="Whether an audit passed."),
    Column("guest", bool,
           help="Whether it was measured on a host that the site's admins don't control."),
    Column("wrote_task", bool, help="Whether the submitter wrote the task."),
    Column("finished_at", datetime, "When", ago, classes="nowrap"),
    Column("submission_id"),
    Column("evaluation_id"),
)  # fmt: skip
ENTRY = Table("EntryRow", _ENTRY)
ENTRIES = Table(
    "RankedEntryRow",
    [replace(_PLACE[0], when=lambda page: page["query"].task), _PLACE[1]]
    + [replace(each, inner="row") for each in _ENTRY],
)
BRIEF = ENTRIES.showing(
    {
        "rank": {}, "agent": {}, "state": {}, "latency_ns": {"after": ""}, "score": {},
        "speedup_best": {}, "unlisted_speedup": {}, "floor_fraction": {},
    }
)  # fmt: skip
"""The columns of a board that its task's page shows."""
OF_VERSION = ENTRY.showing(
    {
        "agent": {}, "state": {},
        "latency_ns": {"cell": lambda time: duration(time.value), "after": ""},
        "score": {}, "speedup_best": {}, "unlisted_speedup": {},
        "finished_at": {"head": "Measured", "classes": "nowrap hide-narrow"},
    }
)  # fmt: skip
"""The columns of results on the pages of a task's versions."""

_LEADING: dict[str, dict[str, object]] = {
    "task": {"is_name": True, "when": bool},
    "score": {"cell": _CELLS + "leading_score.html"},
    "agent": {"head": "Leader", "after": "Interval", "is_name": False, "classes": "at-below"},
    "state": {},
    "latency_ns": {"sub": "of limit", "term": "of limit", "sort": Sort.FLOOR,
                   "direction": "descending", "classes": "n", "after": "records"},
    "finished_at": {"head": "Since", "sort": Sort.NEWEST},
}  # fmt: skip
LEADERS = Table(
    "LeaderRow",
    [
        *(replace(each, inner="entry") for each in ENTRY.showing(_LEADING).columns),
        Column("", None, "Interval", _CELLS + "interval.html", value="entry.rated",
               drawn_head=_CELLS + "ticks.html", classes="axis at-last", after="score"),
        Column("movement", str, "This week", _CELLS + "movement.html", classes="", after="agent",
               help="new, taken, improved or same"),
        Column("gain", _NUMBER, help="Speed relative to the leader of a week ago."),
        Column("led_before", _TEXT, value=lambda row: row.before and row.before.author.agent),
        Column("evaluation_before", _TEXT,
               value=lambda row: row.before and row.before.evaluation_id),
        Column("records", int, "Records", _CELLS + "records.html", value=lambda row: len(row.days),
               classes="", after="movement"),
    ],
)  # fmt: skip

_GROUP = (
    Column("name", str, lambda page: "Name" if page["by"] == By.AGENT else "Language model",
           _CELLS + "name.html", value="owner", is_name=True),
    Column("kind", help="agent, person or shipped; empty for a language model"),
    Column("problems", int, help="Number of problems that this row is judged on."),
    Column("attempted", int),
    Column("solved", int),
    Column("verified", int, help="Number of solved problems whose result passed an audit."),
    Column("correct_share", float, "Correct", _CELLS + "correct.html", sort=Sort.CORRECT,
           classes="n at-last labelled", after="fast_p"),
    Column("evaluations_judged", int, value="judged"),
    Column("evaluations_correct", int, value="accepted"),
    Column("provisional", int, help="Solved problems that the means and fast_p exclude."),
    Column("fast_p", BOUNDS, lambda page: f"fast_{short(page['query'].p)}", _CELLS + "fast.html",
           value="fast", sort=Sort.FAST, classes="n at-below labelled",
           after="score"),
    *(
        replace(each, cell=_CELLS + ("mean_score.html" if each.field == "score" else "mean.html"))
        if each.kind in (BOUNDS, MIDDLE)
        else each
        for each in _SPEEDS
    ),
    Column("usd", _NUMBER, "Cost", _CELLS + "cost.html", sub="of public runs",
           when=lambda page: page["has_costs"],
           help="Cost of public runs in US dollars; null if there were none, or if no price is"
           " known."),
    Column("tokens", int | None),
    Column("usd_per_solved", _NUMBER),
    Column("", None, "Results", "{0.accepted} / {0.judged}".format, value=lambda group: group,
           sub="correct / judged"),
)  # fmt: skip
GROUP_VALUES = {each.sort: each.value_of for each in _GROUP if each.sort} | {
    Sort.SCORE: attrgetter("rated_mean")
}
"""For each sort order of a board, a function that gets the value by which names are ranked."""
GROUPS = Table(
    "NameRow",
    [
        *_PLACE,
        *(replace(each, inner="row") for each in _GROUP),
        Column("over", value="section.over"),
    ],
)
MATRIX = Table(
    "MatrixRow",
    [
        Column("task", value="problem.task"),
        Column("direction", value="problem.direction"),
        Column("agent", value="column.name"),
        Column("kind", value="column.kind"),
        Column("solved", bool),
        Column("score", BOUNDS, value=lambda row: row.entry and row.entry.score),
        Column("speedup_best", BOUNDS, value=lambda row: row.entry and row.entry.speedup),
        replace(_COMPARED_WITH, value=lambda row: row.entry.compared_with if row.entry else ""),
        Column("submission_id", _TEXT, value=lambda row: row.entry and row.entry.submission_id),
        Column("evaluation_id", _TEXT, value=lambda row: row.entry and row.entry.evaluation_id),
    ],
)
TABLES = {
    By.LEADERS: LEADERS, By.MATRIX: MATRIX, By.SUBMISSION: ENTRIES, By.AGENT: GROUPS,
    By.MODEL: GROUPS,
}  # fmt: skip
_IN_BRIEF = frozenset(
    {
        "rank", "task", "direction", "agent", "name", "kind", "language_model", "problems",
        "solved", "correct_share", "fast_p", "latency_ns", "score", "speedup_best",
        "floor_fraction", "usd", "compared_with", "state", "submission_id",
    }
)  # fmt: skip
_brief = cache(lambda table: table.only(_IN_BRIEF))
BRIEF_TABLES: dict[By, Table] = {by: _brief(table) for by, table in TABLES.items()}
"""What the API tells of a row unless it is asked for all."""

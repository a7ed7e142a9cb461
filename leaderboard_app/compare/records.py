"""Comparisons as plain records, for JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaderboard_app.boards.export import entry_record
from leaderboard_app.compare.authors import ProblemRow
from leaderboard_app.compare.submissions import Column

_TIMES = ("time_ns", "low_ns", "high_ns")


def of_submissions(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """A record for each workload of each submission; times in nanoseconds, None if not timed."""
    return [
        {
            "submission_id": column.key,
            "evaluation_id": str(column.evaluation.pk) if column.evaluation else None,
            "agent": str(column.submission.agent),
            "task": column.submission.task_version.task.slug,
            "version": column.submission.task_version.number,
            "direction": column.submission.direction,
            "device": column.evaluation.device_id if column.evaluation else None,
            "verdict": (column.evaluation.verdict or None) if column.evaluation else None,
            "workload": row.name,
            "hidden": row.hidden,
            **{name: (row.measurement or {}).get(name) for name in _TIMES},
            "floor_ns": row.floor_ns,
        }
        for column in columns
        for row in column.rows.values()
    ]


def of_authors(rows: Sequence[ProblemRow]) -> list[dict[str, Any]]:
    """A record for each author's best result on each problem, as boards have it."""
    return [entry_record(entry) for row in rows for entry in row.entries if entry]

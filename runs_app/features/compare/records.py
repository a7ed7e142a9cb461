"""Comparisons as plain records, for JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard_app.boards.tables import ENTRY
from runs_app.features.compare.authors import ProblemRow
from runs_app.features.compare.submissions import Column
from runs_app.submitting.page import WorkloadRow

_TIMES = ("time_ns", "low_ns", "high_ns")


def of_submissions(columns: Sequence[Column]) -> list[dict[str, object]]:
    """A record for each workload of each submission; times in nanoseconds, None if not timed."""
    return [_workload(column, row) for column in columns for row in column.rows.values()]


def _workload(column: Column, row: WorkloadRow) -> dict[str, object]:
    submission, evaluation = column.submission, column.evaluation
    return {
        "submission_id": column.key,
        "evaluation_id": str(evaluation.pk) if evaluation else None,
        "agent": str(submission.agent),
        "task": submission.task_version.task.slug,
        "version": submission.task_version.number,
        "direction": submission.direction,
        "device": evaluation.device_id if evaluation else None,
        "verdict": (evaluation.verdict or None) if evaluation else None,
        "workload": row.name,
        "hidden": row.hidden,
        **{name: getattr(row.measurement, name, None) for name in _TIMES},
        "floor_ns": row.floor_ns,
    }


def of_authors(rows: Sequence[ProblemRow]) -> list[dict[str, object]]:
    """A record for each author's best result on each problem, as boards show it."""
    return [ENTRY.record(entry) for row in rows for entry in row.entries if entry]

"""Rows of a board as plain records, for JSON and CSV."""

from __future__ import annotations

from typing import Any

from leaderboard_app.boards.query import By
from leaderboard_app.boards.ranking import Entry, Estimate, Group, Ranked
from leaderboard_app.boards.selectors import Board

Record = dict[str, Any]


def records(board: Board, start: int = 0, stop: int | None = None) -> list[Record]:
    """One flat record a row, in rank order; None where the data has no value.

    Of the rows from `start`, counted from 0, to the one before `stop`; only those are loaded.
    """
    if board.query.by is By.SUBMISSION:
        return [_entry_record(ranked) for ranked in board.entries[start:stop]]
    return [_group_record(ranked) for ranked in board.groups[start:stop]]


def _bounds(name: str, estimate: Estimate | None) -> Record:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _entry_record(ranked: Ranked[Entry]) -> Record:
    entry = ranked.row
    return {
        "rank": ranked.rank or None,
        "tied": ranked.tied,
        "task": entry.problem.task,
        "direction": entry.problem.direction,
        "device": entry.device,
        "agent": entry.author.agent,
        "language_model": entry.author.language_model,
        "submitter": entry.author.submitter,
        **_bounds("latency_ns", entry.latency),
        **_bounds("speedup_best", entry.speedup),
        "speedup_eager": _value(entry.speedups.get("eager")),
        "speedup_compiled": _value(entry.speedups.get("compiled")),
        "score": entry.score,
        "floor_fraction": entry.floor_fraction,
        "hidden_ratio": entry.hidden_ratio,
        "audited": entry.audited,
        "verified": entry.verified,
        "wrote_task": entry.wrote_task,
        "finished_at": entry.finished_at.isoformat(),
        "submission_id": entry.submission_id,
        "evaluation_id": entry.evaluation_id,
    }


def _group_record(ranked: Ranked[Group]) -> Record:
    group = ranked.row
    return {
        "rank": ranked.rank or None,
        "tied": ranked.tied,
        "name": group.owner,
        "problems": group.problems,
        "attempted": group.attempted,
        "solved": group.solved,
        "verified": group.verified,
        "correct_share": group.correct_share,
        "evaluations_judged": group.judged,
        "evaluations_correct": group.accepted,
        **_bounds("fast_p", group.fast),
        **_bounds("speedup_best", group.speedup()),
        "speedup_eager": _value(group.speedup("eager")),
        "speedup_compiled": _value(group.speedup("compiled")),
        "score": group.score,
        "floor_fraction": group.floor_fraction,
        "hidden_ratio": group.hidden_ratio,
    }

"""Rows of a board as plain records, for JSON and CSV."""

from __future__ import annotations

from typing import Any

from leaderboard_app.boards.board import Board
from leaderboard_app.boards.groups import Group
from leaderboard_app.boards.history import Leader
from leaderboard_app.boards.matrix import Matrix
from leaderboard_app.boards.query import By
from leaderboard_app.boards.ranking import Entry, Estimate, Ranked

Record = dict[str, Any]


def records(board: Board, start: int = 0, stop: int | None = None) -> list[Record]:
    """One flat record a row, in rank order; None where the data has no value.

    Of the rows from `start`, counted from 0, to the one before `stop`; only those are loaded.
    """
    if board.query.by is By.LEADERS:
        return [_leader_record(leader) for leader in board.leaders[start:stop]]
    if board.query.by is By.MATRIX:
        return _matrix_records(board.matrix)[start:stop]
    if board.query.by is By.SUBMISSION:
        return [_ranked_record(ranked) for ranked in board.entries[start:stop]]
    rows = [(section, ranked) for section in board.sections for ranked in section.groups]
    return [
        _group_record(ranked) | {"over": section.over.value} for section, ranked in rows[start:stop]
    ]


def _bounds(name: str, estimate: Estimate | None) -> Record:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _leader_record(leader: Leader) -> Record:
    before = leader.before
    return {
        **entry_record(leader.entry),
        "movement": leader.movement,
        "gain": leader.gain,
        "led_before": before.author.agent if before else None,
        "evaluation_before": before.evaluation_id if before else None,
        "records": len(leader.days),
    }


def _matrix_records(matrix: Matrix) -> list[Record]:
    """A row for each agent and problem that it attempted."""
    return [
        {
            "task": problem.task,
            "direction": problem.direction,
            "agent": column.name,
            "kind": column.kind,
            "solved": cell.entry is not None,
            **_bounds("speedup_best", cell.entry.speedup if cell.entry else None),
            "submission_id": cell.entry.submission_id if cell.entry else None,
            "evaluation_id": cell.entry.evaluation_id if cell.entry else None,
        }
        for problem, cells in matrix.rows
        for column, cell in zip(matrix.columns, cells, strict=True)
        if cell.entry or cell.attempted
    ]


def _ranked_record(ranked: Ranked[Entry]) -> Record:
    return {"rank": ranked.rank or None, "tied": ranked.tied, **entry_record(ranked.row)}


def entry_record(entry: Entry) -> Record:
    """One result with its author, times in nanoseconds."""
    return {
        "task": entry.problem.task,
        "direction": entry.problem.direction,
        "device": entry.device,
        "agent": entry.author.agent,
        "kind": entry.author.kind,
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
        "kind": group.kind,
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
        "usd": group.usd,
        "tokens": group.tokens,
        "usd_per_solved": group.usd_per_solved,
    }

"""What leads a board: one figure, one sentence and one picture, for the top of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.urls import reverse

from leaderboard_app.boards.board import Board
from leaderboard_app.boards.groups import Group
from leaderboard_app.boards.matrix import Cell
from leaderboard_app.boards.query import By
from leaderboard_app.boards.ranking import Entry, Estimate, Ranked
from runs_app.core.baselines.selectors import Baselines
from runs_app.models import Device, Evaluation
from runs_app.submitting.page import workload_rows
from runs_app.submitting.pictures.comparison import comparison, standing
from runs_app.submitting.pictures.plot import Plot, PlotRow, axis_of, plot, shown_ends
from runs_app.submitting.summary import speed
from tasks_app.numbers import percent, significant, times

_MOST_ROWS = 6  # chosen: as high as the figure and the sentence beside the picture


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The top of a board. `said` goes on after a link to `name`; `kind` is the figure's color."""

    number: str
    unit: str
    said: str
    name: str = ""
    address: str = ""
    kind: str = "neutral"
    picture: Plot | None = None
    entry: Entry | None = None  # whose state is shown


def leading(entry: Entry) -> Headline | None:
    """The headline of a task's board that `entry` leads; None without a speedup."""
    rows = Evaluation.objects.select_related("result", "submission__agent", "device")
    evaluation = rows.get(pk=entry.evaluation_id)
    if not evaluation.rated:
        return None
    listed = [row for row in workload_rows(evaluation.result.data) if not row.hidden]
    is_sure = entry.state.is_sure
    with_speed = speed(evaluation, evaluation.rated, evaluation.rated_spread)
    return Headline(
        number=significant(evaluation.rated),
        unit="×",
        said=f"leads{'' if is_sure else ' for now'} on {evaluation.device}, with {with_speed}.",
        name=entry.author.agent,
        address=evaluation.submission.get_absolute_url(),
        kind=standing(evaluation.rated, evaluation.rated_spread) if is_sure else "neutral",
        picture=comparison(evaluation, listed, [], Baselines(), name=entry.author.agent),
        entry=entry,
    )


def headline(board: Board, device: Device) -> Headline | None:
    """The headline of a board over several problems; None if it has nothing to say."""
    if board.query.by is By.LEADERS:
        return _of_leaders([leader.entry for leader in board.leaders], device)
    if board.query.by is By.MATRIX:
        return _of_matrix(board.matrix.rows, device)
    return _of_names(board.sections[0].groups, board.query.p, device) if board.sections else None


def _of_leaders(entries: Sequence[Entry], device: Device) -> Headline | None:
    if not any(entry.is_sure for entry in entries):
        return None
    faster = sum(entry.is_sure and Cell(entry).level > 0 for entry in entries)
    [(name, leads)] = Counter(entry.author.agent for entry in entries).most_common(1)
    best = sorted(
        ((entry.rated, entry) for entry in entries if entry.rated), key=lambda pair: -pair[0].value
    )
    rows = [
        (entry.problem.task, entry.author.agent, rated, reverse("task", args=[entry.problem.task]))
        for rated, entry in best
    ]
    return Headline(
        number=str(faster),
        unit=f"of {len(entries)} task{'s' if len(entries) > 1 else ''}",
        said=f"{'has' if faster == 1 else 'have'} a leading kernel on {device} that is known to be"
        f" faster than the best baseline. {name} leads the most: {leads}.",
        kind="faster" if faster else "neutral",
        picture=_picture(rows, "The fastest leaders against the best baseline."),
    )


def _of_matrix(rows: Iterable[tuple[object, Sequence[Cell]]], device: Device) -> Headline | None:
    solved = [
        [cell.entry for cell in cells if cell.entry and cell.entry.rated] for _, cells in rows
    ]
    fastest = [max(entries, key=_speed_by) for entries in solved if entries]
    sure = [(each.author.agent, each.author.agent_id) for each in fastest if each.is_sure]
    if not sure:
        return None
    [((name, agent_id), wins)] = Counter(sure).most_common(1)
    return Headline(
        number=str(wins),
        unit=f"of {len(fastest)}",
        said=f"is the fastest on {wins} of {len(fastest)} solved tasks on {device}.",
        name=name,
        address=reverse("agent", args=[agent_id]),
    )


def _speed_by(entry: Entry) -> tuple[float, str]:
    return (entry.rated.value if entry.rated else 0.0), entry.author.agent


def _of_names(ranked: Sequence[Ranked[Group]], p: float, device: Device) -> Headline | None:
    """Of the first section of a board by agent or language model, which ranks by fast_p."""
    first = ranked[0].row
    if not first.solved:
        return None
    level = sum(each.rank == 1 for each in ranked) - 1
    tie = f" {level} more {'are' if level > 1 else 'is'} level with it." if level else ""
    faster = "faster than" if p == 1 else f"more than {p:g}× as fast as"
    known = [(row.score, row) for row in (each.row for each in ranked) if row.score]
    rows = [
        (row.owner, f"{row.solved} of {row.problems} solved", score, "")
        for score, row in sorted(known, key=lambda pair: -pair[0].value)
    ]
    return Headline(
        number=percent(first.fast.value).removesuffix(" %"),
        unit="%",
        said=f"leads on {device}: of {first.problems} tasks, it solved {first.solved}, and it is"
        f" {faster} the best baseline on this share.{tie}",
        name=first.owner,
        address=reverse("agent", args=[first.agent_id]) if first.kind else "",
        kind="faster" if first.is_sure and first.fast.value > 0.5 else "neutral",
        picture=_picture(rows, "Mean score of each, with its 95 % interval."),
    )


def _picture(rows: Sequence[tuple[str, str, Estimate, str]], caption: str) -> Plot | None:
    shown = rows[:_MOST_ROWS]
    if len(shown) < 2:
        return None
    axis = axis_of(end for _, _, each, _ in shown for end in (each.value, each.low, each.high))
    marks = [
        PlotRow(
            label=label,
            note=note,
            value=times(each.value),
            marks=(axis.mark("bar", each.value, *_ends(each)),),
            address=address,
        )
        for label, note, each, address in shown
    ]
    return plot(axis, marks, f"{caption} On a logarithmic axis; further right is faster.")


def _ends(estimate: Estimate) -> tuple[float, float] | tuple[()]:
    return shown_ends(estimate.low, estimate.high)

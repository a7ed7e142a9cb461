"""What leads a board: one figure, one sentence and one picture, for the top of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from django.urls import reverse
from django.utils.text import get_text_list

from leaderboard_app.boards.board import Board
from leaderboard_app.boards.groups import Group, Section
from leaderboard_app.boards.matrix import Cell, Row
from leaderboard_app.boards.paired import lead
from leaderboard_app.boards.query import By
from leaderboard_app.boards.ranking import Entry, counted_problems
from runs_app.core.baselines.selectors import Baselines
from runs_app.core.integrity.ranking import Estimate, Ranked
from runs_app.models import Device, Evaluation
from runs_app.submitting.page import library_speedups, workload_rows
from runs_app.submitting.pictures.comparison import comparison, standing
from runs_app.submitting.pictures.plot import Plot, PlotRow, axis_of, plot, shown_ends
from runs_app.submitting.summary import speed, unit_of
from tasks_app.numbers import (
    counted,
    duration_parts,
    duration_text,
    percent,
    significant,
    times,
)
from tasks_app.templatetags.display import half_width

_MOST_ROWS = 6  # chosen: as high as the figure and the sentence beside the picture
_MOST_NAMES = 3  # chosen: a sentence names so many that lead equally often


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


def leading(rows: Sequence[Ranked[Entry]]) -> Headline:
    """The headline of a task's board with these rows; a provisional first is ahead for now."""
    entry = rows[0].row
    level = [each.row.author.agent for each in rows[1:] if each.rank == 1]
    evaluations = Evaluation.objects.select_related("result", "submission__agent", "device")
    evaluation = evaluations.get(pk=entry.evaluation_id)
    speedup, spread, own_ns = evaluation.rated, evaluation.rated_spread, entry.latency.value
    number, unit = duration_parts(own_ns)
    with_speed = f"{duration_text(own_ns)} a call; no baseline is known yet"
    if speedup:
        number, unit = times(speedup), unit_of(evaluation)
        with_speed = speed(evaluation, speedup, spread)
    listed = [row for row in workload_rows(evaluation.result.data) if not row.hidden]
    libraries = library_speedups(evaluation.result.data, evaluation.task_version)
    beside = _beside(libraries) if entry.is_sure else ""
    lead = _lead(level, is_sure=entry.is_sure)
    return Headline(
        number=number,
        unit=unit,
        said=f"{lead} on {evaluation.device}, with {with_speed}.{beside}",
        name=entry.author.agent,
        address=evaluation.get_absolute_url(),
        kind=standing(speedup, spread) if entry.is_sure else "neutral",
        picture=comparison(
            evaluation,
            listed,
            [],
            Baselines(),
            libraries,
            name=entry.author.agent,
        ),
        entry=entry,
    )


def _beside(libraries: Mapping[str, float]) -> str:
    """How the leader compares with the fastest library that the task names."""
    if not libraries:
        return ""
    title, speedup = min(libraries.items(), key=lambda pair: pair[1])
    return (
        f" {title} is the fastest library: on listed sizes, the leader is {times(speedup)} as fast."
    )


def _lead(level: list[str], *, is_sure: bool) -> str:
    """The verb for who leads, perhaps with others on the same rank."""
    if not level:
        return "leads" if is_sure else "is ahead for now"
    others = get_text_list(level, "and")
    return f"shares the lead with {others}" if is_sure else f"is tied with {others} for now"


def headline(board: Board, device: Device) -> Headline | None:
    """The headline of a board over several problems; None if it has nothing to say."""
    if board.query.by is By.LEADERS:
        return _of_leaders([leader.entry for leader in board.leaders], device)
    if board.query.by is By.MATRIX:
        return _of_matrix(board.matrix.rows, device)
    first = board.sections[0] if board.sections else None
    return _of_names(first, board.query.p, device) if first and first.has_leader else None


def _of_leaders(entries: Sequence[Entry], device: Device) -> Headline | None:
    final = [(entry.rated, entry) for entry in entries if entry.is_final and entry.rated]
    if not final:
        return None
    faster = sum(Cell(entry).level > 0 for _, entry in final)
    best = sorted(final, key=lambda pair: -pair[0].value)
    rows = [
        (entry.problem.label, entry.author.agent, rated, reverse("task", args=[entry.problem.task]))
        for rated, entry in best
    ]
    return Headline(
        number=str(faster),
        unit=f"of {counted_problems([entry.problem for _, entry in final])}",
        said=f"with a final leader on {device} {'is' if faster == 1 else 'are'} led by a kernel"
        f" known to be faster than the best baseline.{_most(final)}",
        kind="faster" if faster else "neutral",
        picture=_picture(rows, "The fastest leaders, compared with the best baseline."),
    )


def _most(final: Sequence[tuple[Estimate, Entry]]) -> str:
    """Who leads the most boards, and how many."""
    authors = Counter(entry.author.agent for _, entry in final)
    most = max(authors.values())
    names = sorted(name for name, leads in authors.items() if leads == most)
    if len(names) == 1:
        return f" {names[0]} leads the most, with {most}."
    if len(names) > _MOST_NAMES:
        return ""
    return f" {get_text_list(names, 'and')} lead the most, with {most} each."


def _of_matrix(rows: Iterable[Row], device: Device) -> Headline | None:
    solved = [[cell.entry for cell in row.cells if cell.entry] for row in rows]
    best = [max(entries, key=attrgetter("merit")) for entries in solved if entries]
    final = [each for each in best if each.is_final]
    if not final:
        return None
    wins = Counter((each.author.agent, each.author.agent_id) for each in final)
    most = max(wins.values())
    [first, *others] = sorted(agent for agent, count in wins.items() if count == most)
    too = (
        f"and {get_text_list([name for name, _ in others], 'and')} each lead" if others else "leads"
    )
    return Headline(
        number=str(most),
        unit=f"of {len(final)}",
        said=f"{too} {most} of the {counted_problems([each.problem for each in final])} with a"
        f" final leader on {device}; provisional results don't count.",
        name=first[0],
        address=reverse("agent", args=[first[1]]),
    )


def _of_names(section: Section, p: float, device: Device) -> Headline | None:
    """Of the first section of a board by agent or language model, which ranks by fast_p."""
    rows = [ranked.row for ranked in section.groups]
    [first, *level] = [ranked.row for ranked in section.groups if ranked.rank <= 1]
    if first.rated_mean is None or first.fast is None:
        return None
    means = sorted(
        ((row.rated_mean, row) for row in rows if row.rated_mean), key=lambda pair: -pair[0].value
    )
    share = first.fast.value
    alike = sum(row.fast is not None and row.fast.value == share for row in rows) - 1
    found = (
        _of_sure(first, share, level, p, device, alike) if share else _for_now(first, level, device)
    )
    ahead = lead(first.entries, rows[1].entries)
    return replace(
        found,
        said=f"{found.said} {ahead.sentence(first.owner, rows[1].owner)}" if ahead else found.said,
        picture=_picture(
            [(r.owner, f"over {counted(len(r.sure), 'result')}", mean, "") for mean, r in means],
            "Mean scores, with 95 % intervals.",
        ),
    )


def _of_sure(
    first: Group, value: float, level: Sequence[Group], p: float, device: Device, alike: int
) -> Headline:
    """With the share of tasks; `alike` others have the same share."""
    faster = "faster than" if p == 1 else f"more than {p:g}× as fast as"
    share = (
        f"{faster} the best baseline on this share of {counted(first.counted, 'task')} on {device}"
    )
    kind = "faster" if value > 0.5 else "neutral"
    number = percent(value).removesuffix(" %")
    if level:
        names = get_text_list([row.owner for row in (first, *level)], "and")
        said = f"Nobody leads: {names} are each {share}, and their speedups are too close to call."
        return Headline(number=number, unit="%", said=said, kind=kind)
    return Headline(
        number=number,
        unit="%",
        said=f"leads: it is {share}{_by_mean(alike)}.",
        name=first.owner,
        address=_address(first),
        kind=kind,
    )


def _by_mean(alike: int) -> str:
    if not alike:
        return ""
    others = "is one other" if alike == 1 else f"are {alike} others"
    return f", as {others}, and has the highest mean speedup among them"


def _for_now(first: Group, level: Sequence[Group], device: Device) -> Headline:
    """No result is known to be faster, so the mean score is all there is to tell."""
    assert first.rated_mean is not None
    share = f"this mean score over {counted(len(first.sure), 'task')} on {device}"
    if level:
        names = get_text_list([row.owner for row in (first, *level)], "and")
        start, name, address = f"Nobody leads: {names} are tied. The first has {share}.", "", ""
    else:
        start, name, address = f"is ahead for now, with {share}.", first.owner, _address(first)
    return Headline(
        number=significant(first.rated_mean.value),
        unit="×",
        said=f"{start} No result is known to be faster than the best baseline yet.",
        name=name,
        address=address,
    )


def _address(group: Group) -> str:
    return reverse("agent", args=[group.agent_id]) if group.kind and group.agent_id else ""


def _picture(rows: Sequence[tuple[str, str, Estimate, str]], caption: str) -> Plot | None:
    shown = rows[:_MOST_ROWS]
    if len(shown) < 2:
        return None
    axis = axis_of(end for _, _, each, _ in shown for end in (each.value, each.low, each.high))
    marks = [
        PlotRow(
            label=label,
            note=note,
            value=f"{times(each.value)} {half_width(each)}",
            marks=(axis.mark("bar", each.value, *_ends(each)),),
            address=address,
        )
        for label, note, each, address in shown
    ]
    return plot(axis, marks, f"{caption} On a logarithmic axis; further right is faster.")


def _ends(estimate: Estimate) -> tuple[float, float] | tuple[()]:
    return shown_ends(estimate.low, estimate.high)

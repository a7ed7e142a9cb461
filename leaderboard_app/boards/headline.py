"""Who leads a board: one figure, one sentence and one picture, for the top of a page."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard_app.boards.ranking import Entry
from runs_app.core.baselines.selectors import Baselines
from runs_app.models import Evaluation
from runs_app.submitting.page import workload_rows
from runs_app.submitting.pictures.comparison import comparison, standing
from runs_app.submitting.pictures.plot import Plot
from runs_app.submitting.summary import speed
from tasks_app.numbers import significant


@dataclass(frozen=True, kw_only=True)
class Leading:
    """The first of a board. `number` is how many times the best baseline's speed it has."""

    entry: Entry
    evaluation: Evaluation
    number: str
    kind: str
    said: str
    picture: Plot | None


def leading(entry: Entry) -> Leading | None:
    """The headline of a board that `entry` leads; None without a speedup."""
    rows = Evaluation.objects.select_related("result", "submission__agent", "device")
    evaluation = rows.get(pk=entry.evaluation_id)
    if not evaluation.rated:
        return None
    listed = [row for row in workload_rows(evaluation.result.data) if not row.hidden]
    is_sure = entry.state.is_sure
    return Leading(
        entry=entry,
        evaluation=evaluation,
        number=significant(evaluation.rated),
        kind=standing(evaluation.rated, evaluation.rated_spread) if is_sure else "neutral",
        said=speed(evaluation, evaluation.rated, evaluation.rated_spread),
        picture=comparison(evaluation, listed, [], Baselines(), name=entry.author.agent),
    )

"""Links to comparisons on other pages."""

from __future__ import annotations

from collections.abc import Sequence

from django.template.context import Context

from leaderboard_app.boards.ranking import Entry
from runs_app.core.hooks import Filling, Slot, fills
from runs_app.models import Agent, Device, Evaluation, LanguageModel, Run, Submission
from runs_app.submitting.selectors import SourceDifference, usual_others


@fills(Slot.BOARDS)
def _of_board(context: Context, device: Device) -> Filling:
    """A button for the agents of a device."""
    return Filling("compare/parts/board.html", {"device": device})


@fills(Slot.AUTHOR)
def _of_author(
    context: Context, agent: Agent | None = None, language_model: LanguageModel | None = None
) -> Filling:
    """A button for one that is compared with others."""
    values = {"agent": agent, "language_model": language_model}
    return Filling("compare/parts/author.html", values)


@fills(Slot.BOARD_ROWS)
def _selected(context: Context, device: Device) -> Filling:
    """A button for the rows of a task's board that are selected."""
    return Filling("compare/parts/selected.html", {"device": device})


@fills(Slot.BOARD_ROW)
def _row(context: Context, entry: Entry) -> Filling:
    """Selects a row of a task's board."""
    return Filling("compare/parts/row.html", {"entry": entry})


@fills(Slot.SUBMISSION)
def _usual(
    context: Context, submission: Submission, device: Device, evaluation: Evaluation
) -> Filling | None:
    """Leads to a submission beside its author's last and the leader, if there is either."""
    others = usual_others(evaluation, context["user"])
    values = {"submission": submission, "device": device, "others": others}
    return Filling("compare/parts/usual.html", values) if others else None


@fills(Slot.DIFFERENCES)
def _of_submission(
    context: Context, submission: Submission, others: Sequence[SourceDifference] = ()
) -> Filling:
    """Leads to a submission beside others, workload by workload."""
    return Filling("compare/parts/submission.html", {"submission": submission, "others": others})


@fills(Slot.RUN_LINKS)
def _of_run(context: Context, run: Run) -> Filling:
    """A link to the run beside others."""
    return Filling("compare/parts/run.html", {"run": run})


@fills(Slot.RUNS)
def _of_runs(context: Context) -> Filling:
    """Buttons for runs beside each other, and for settings over repeats."""
    return Filling("compare/parts/run_list.html", {})

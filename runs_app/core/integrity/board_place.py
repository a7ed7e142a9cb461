"""Which place a result has on its board, in words, with the address of its row there."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.humanize.templatetags.humanize import ordinal
from django.urls import reverse

from gpu_runner.data.verdict import Direction
from runs_app.core.integrity.ranking import Place, ranked_places_beside
from runs_app.core.work.result_state import EAGER_ONLY, result_state
from runs_app.models import Evaluation
from tasks_app.people import Viewer
from tasks_app.selectors import outlines

PAGE_ROWS = 50  # chosen: rows of a page of a board


@dataclass(frozen=True, kw_only=True)
class BoardPlace:
    """A result's place on its board, as that board has it now.

    words: a clause without an end. rank: None while it's provisional, or if the board shows a
    better result of its author and agent. of: rows of the board. address: its row there.
    """

    words: str
    rank: int | None
    tied: bool
    of: int
    address: str


def board_place(evaluation: Evaluation, reader: Viewer) -> BoardPlace:
    """The place of an evaluation that counts on its board, as `reader` is told."""
    places = ranked_places_beside(evaluation)
    at = next((at for at, each in enumerate(places) if each.pk == evaluation.pk), None)
    state = result_state(evaluation)
    rank, tied = None, False
    if at is None:
        whose = "of yours" if reader.pk == evaluation.submission.author_id else "by its author"
        words = f"The {_board(evaluation)} shows a better result {whose}"
    elif state is not None and not state.is_sure:
        words = f"Its place on the {_board(evaluation)} is provisional"
        if state is EAGER_ONLY:
            words = f"{words}: the site that measured it reported no time for torch.compile"
    else:
        rank, tied = places[at].rank, places[at].tied
        words = f"{_rank(places[at], len(places))} on the {_board(evaluation)}"
    return BoardPlace(
        words=words, rank=rank, tied=tied, of=len(places), address=_address(evaluation, at)
    )


def _rank(place: Place, count: int) -> str:
    return f"{'Tied for ' if place.tied else ''}{ordinal(place.rank)} of {count}"


def _board(evaluation: Evaluation) -> str:
    backward = " backward" if evaluation.direction == Direction.BACKWARD else ""
    return f"{evaluation.device.short_name}{backward} board"


def _address(evaluation: Evaluation, at: int | None) -> str:
    """The board, on the page with its row."""
    version = evaluation.task_version
    chosen = {"task": version.task.slug, "device": evaluation.device_id}
    if len(outlines([version.digest])[version.digest].directions) > 1:
        chosen["direction"] = evaluation.direction
    if at is None:
        return f"{reverse('leaderboard')}?{urlencode(chosen)}"
    if at >= PAGE_ROWS:
        chosen["page"] = str(at // PAGE_ROWS + 1)
    return f"{reverse('leaderboard')}?{urlencode(chosen)}#e-{evaluation.pk}"

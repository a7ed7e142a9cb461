"""Where features join in: the five hooks of a core that names no feature, and other signals.

docs/features.md has examples. A feature registers in its module `hooks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.dispatch import Signal
from django.template.context import Context

from tasks_app.people import Viewer

if TYPE_CHECKING:
    from runs_app.models import Submission

evaluation_ended = Signal()
"""An evaluation has its final status. Receivers run in the same transaction.

Arguments: `evaluation`.
"""

place_changed = Signal()
"""Another submission leads a board, or none does. Receivers run in the same transaction.

Arguments: `before` and `after`, the evaluations that led it and lead it, or None; and `now`.
"""

tick = Signal()
"""A few seconds have passed, and the site looks after what nobody works on.

Receivers don't run in a transaction. One that raises is logged. Arguments: `now`.
"""

device_made = Signal()
"""A device has shown itself for the first time. Receivers run in the same transaction.

Arguments: `device`, `now`.
"""

heartbeat = Signal()
"""A runner has said that it lives. Receivers run in the same transaction.

Arguments: `runner`, its `sensors` by name, and `now`.
"""


class Slot(StrEnum):
    """A place on a page that features fill, and what it tells them."""

    HEADER = "header"
    """The right end of every page's header, for people who are signed in."""
    NAVIGATION = "navigation"
    """The main links of every page, for admins."""
    BANNERS = "banners"
    """Above the content of every page."""
    CRUMBS = "crumbs"
    """Where a page for admins says what it belongs to."""
    QUEUE = "queue"
    """Above the queues."""
    TASKS = "tasks"
    """The list of tasks. Tells: `place`.

    That is `head`, beside the title, for people who are signed in; or `body`, above the list, for
    admins.
    """
    TASK = "task"
    """Below the title of a task's page. Tells: `task`."""
    BOARD = "board"
    """Below the board of a device. Tells: `device`, and `slug`, the task's or empty."""
    BOARD_ROW = "board-row"
    """Before the name in a row of a task's board. Tells: `entry`."""
    BOARD_ROWS = "board-rows"
    """Below the rows of a task's board. Tells: `device`."""
    SUBMISSION = "submission"
    """A chip below the sentence that says how a submission went.

    Tells: `submission`, `evaluation`, and its `device`. Features add no paragraphs there: the
    sentence is written in `submitting/summary.py`.
    """
    BOARDS = "boards"
    """Buttons beside the title of the leaderboard. Tells: `device`."""
    AUTHOR = "author"
    """Beside the title of an agent's page or a language model's. Tells: one of these."""
    DIFFERENCES = "differences"
    """Below what a submission's source changed. Tells: `submission`, and later `others`."""
    RUNS = "runs"
    """Buttons beside the title of the list of runs."""
    RUN_LINKS = "run-links"
    """In the paragraph below the title of a run's page. Tells: `run`."""
    FOOTER = "footer"
    """Links at the foot of every page."""
    SOUNDNESS = "soundness"
    """Among what is known of a version's soundness. Tells: `version`."""
    DRAFT = "draft"
    """Below the editor of a draft. Tells: `draft`."""
    CURATED = "curated"
    """What admins can do with a task. Tells: `task`, and `place`.

    That is `head` beside the title of the task's pages, and `page`, `row` or `draft` elsewhere.
    """
    CURATED_MANY = "curated-many"
    """What admins can do with tasks that they have selected, in a form of `core.queue.many`."""
    RUN = "run"
    """Below the title of a run's page. Tells: `run`."""


@dataclass(frozen=True)
class Filling:
    """What a feature puts into a slot: a template, and all the values that it sees."""

    template: str
    values: Mapping[str, object]


Filler = Callable[..., Filling | None]
"""Takes the page's context and what the slot tells; returns None to show nothing."""

_fillers: dict[Slot, list[Filler]] = {slot: [] for slot in Slot}


def fills(slot: Slot) -> Callable[[Filler], Filler]:
    """Have a function fill a slot."""

    def register(filler: Filler) -> Filler:
        _fillers[slot].append(filler)
        return filler

    return register


def fillings(slot: Slot, context: Context, **about: object) -> list[Filling]:
    """What the features put into a slot, in the order of `settings.FEATURES`."""
    made = (filler(context, **about) for filler in _fillers[slot])
    return [filling for filling in made if filling is not None]


class Bearer:
    """Somebody other than an account by whose token a request is made, such as a challenge's entry.

    Attributes: name: tells it from other bearers. pk: its row's key. user: the account to which it
    belongs. scopes: what its token allows. reach: says, in a refusal, what it may do. title: what
    it is to people, and url: its page.
    """

    reach = title = url = ""

    def __init__(self, name: str, pk: object, user: User, scopes: Sequence[str]) -> None:
        self.name, self.pk, self.user, self.scopes = name, pk, user, scopes

    def refusal(self, now: datetime) -> str:
        """Why its token isn't valid at `now`; empty if it is."""
        raise NotImplementedError

    def viewer(self, path: str, *, reading: bool) -> Viewer | None:
        """As whom a request to that path of the API is answered; None where it may not be."""
        raise NotImplementedError

    def submit(self, *, task: str, **fields: object) -> Submission:
        """Submit a kernel; the fields are those of the API."""
        raise NotImplementedError

    def own(self, submissions: QuerySet[Submission]) -> QuerySet[Submission]:
        """Those that its token has made."""
        raise NotImplementedError


Finder = Callable[[str, User | None], Bearer | None]
"""Takes a token's text and None, or the key of a bearer and its user; returns it, or None."""

_finders: list[Finder] = []


def finds_bearer(finder: Finder) -> Finder:
    """Have a function say whom a token belongs to, and which bearers a user has."""
    _finders.append(finder)
    return finder


def bearer_of(text: str, user: User | None = None) -> Bearer | None:
    """Whom a token belongs to that no account has made; of a `user`, whose key this is."""
    found = (finder(text, user) for finder in _finders)
    return next((bearer for bearer in found if bearer is not None), None)

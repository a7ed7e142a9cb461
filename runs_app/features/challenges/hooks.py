"""What challenges do at the core's hooks: tokens of entries, steps that time brings, and links.

The token of an entry may submit, cancel, report and finish; and it sees what is the entry's own.
"""

from __future__ import annotations

import copy
import re
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet
from django.dispatch import receiver
from django.template.context import Context

from runs_app.core.hooks import Bearer, Filling, Slot, fills, finds_bearer, tick
from runs_app.features.challenges.attempts import submit_for_entry
from runs_app.features.challenges.models import Attempt, Entry, digest_of
from runs_app.features.challenges.settle import settle_challenges
from runs_app.models import Device, Submission
from runs_app.submitting.identity import beginning_with
from tasks_app.people import Viewer, account_closing

_SUBMISSIONS = re.compile(r"/api/v1/submissions")
_READ = re.compile(r"/api/v1/submissions/([0-9a-fA-F-]{8,36})(?:/status)?")
_CANCEL = re.compile(r"/api/v1/submissions/([0-9a-fA-F-]{8,36})/cancel")
_ENTRY = re.compile(r"/api/v1/entries/([0-9a-fA-F-]{32,36})(?:/\w+)?")


class EntryBearer(Bearer):
    """An entry, by its token: what is the entry's own it does as its owner, never as an admin.

    All else it reads as a visitor does: the owner's other entries and private kernels are none of
    this agent's business.
    """

    reach = "an entry's token can only submit, cancel, report and finish for that entry"

    def __init__(self, entry: Entry) -> None:
        super().__init__(f"entry {entry.pk}", entry.pk, entry.user, entry.scopes)
        self.entry = entry
        self.title = f"{entry.agent}'s entry to {entry.challenge}"
        self.url = entry.get_absolute_url()

    def refusal(self, now: datetime) -> str:
        """What the entry says."""
        return self.entry.refusal

    def viewer(self, path: str, *, reading: bool) -> Viewer | None:
        """The owner for what is the entry's own; else a visitor, who only reads."""
        own = (m := _ENTRY.fullmatch(path)) is not None and _uuid(m[1]) == self.entry.pk
        own = own or _SUBMISSIONS.fullmatch(path) is not None  # a list holds this entry's alone
        submission = (_READ if reading else _CANCEL).fullmatch(path)
        own = own or (submission is not None and _is_own(self.entry, submission[1]))
        if own:
            return _plain(self.entry)
        return AnonymousUser() if reading else None

    def submit(self, *, task: str, **fields: Any) -> Submission:
        """Enter a kernel for the entry, within its budget."""
        named = fields.pop("entry", "")  # the file, not the one who competes
        return submit_for_entry(entry=self.entry, task=task, entry_file=named, **fields)

    def own(self, submissions: QuerySet[Submission]) -> QuerySet[Submission]:
        """Those of the entry."""
        return submissions.filter(attempt__entry=self.entry)


@finds_bearer
def find_bearer(text: str, user: User | None = None) -> EntryBearer | None:
    """The entry whose token this is; of a user, the entry of that id."""
    rows = Entry.objects.select_related("user", "challenge", "agent").defer("transcript")
    own = {"digest": digest_of(text)} if user is None else {"pk": _uuid(text), "user": user}
    entry = rows.filter(**own).first()
    return EntryBearer(entry) if entry is not None else None


def _is_own(entry: Entry, text: str) -> bool:
    """Whether an id, or its beginning, is that of a submission of the entry."""
    own = Submission.objects.filter(attempt__entry=entry)
    found = beginning_with(text, own) or []
    return own.filter(pk__in=found).exists()


def _plain(entry: Entry) -> Viewer:
    """The owner without an admin's rights, which would show hidden workloads; never saved."""
    user = copy.copy(entry.user)
    user.is_staff = user.is_superuser = False
    return user


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@receiver(tick)
def _settle(sender: object, now: datetime, **_: object) -> None:
    """Take all steps that time has brought."""
    settle_challenges(now=now)


@receiver(account_closing)
def _forget(sender: object, user: User, **_: object) -> None:
    """Keep what was measured, without what the agent said."""
    Entry.objects.filter(user=user).update(transcript="")


@fills(Slot.FOOTER)
def _link(context: Context) -> Filling:
    """Leads to all challenges."""
    return Filling("challenges/parts/link.html", {})


@fills(Slot.BOARDS)
def _button(context: Context, device: Device) -> Filling:
    """The same, as a button."""
    return Filling("challenges/parts/button.html", {})


@fills(Slot.SUBMISSION)
def _attempt(context: Context, submission: Submission, **_: object) -> Filling | None:
    """Of which entry a submission is an attempt."""
    attempt = Attempt.objects.filter(submission=submission).select_related("entry").first()
    if attempt is None:
        return None
    return Filling("challenges/parts/attempt.html", {"entry": attempt.entry})

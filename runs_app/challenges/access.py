"""What the token of an entry may do: submit, report and finish; and what it sees."""

from __future__ import annotations

import copy
import re
from uuid import UUID

from django.contrib.auth.models import AnonymousUser

from runs_app.models import Entry, Submission
from tasks_app.people import Viewer

_ID = r"([0-9a-fA-F-]{32,36})"
_SUBMISSIONS = re.compile(r"/api/v1/submissions")
_SUBMISSION = re.compile(rf"/api/v1/submissions/{_ID}(?:/status)?")
_ENTRY = re.compile(rf"/api/v1/entries/{_ID}(?:/\w+)?")

REFUSAL = "this is an entry's token: it submits for its entry, reports and finishes it, no more"


def viewer_of(entry: Entry, path: str, *, reading: bool) -> Viewer | None:
    """As whom a request with an entry's token is answered; None where it may not be.

    What is the entry's own it does as its owner, though never as an admin. All else it reads as a
    visitor does: the owner's other entries and private kernels are none of this agent's business.
    """
    own = (m := _ENTRY.fullmatch(path)) is not None and _uuid(m[1]) == entry.pk
    own = own or _SUBMISSIONS.fullmatch(path) is not None  # a list holds this entry's alone
    if reading:
        submission = _SUBMISSION.fullmatch(path)
        own = own or (submission is not None and _is_own(entry, _uuid(submission[1])))
        return _plain(entry) if own else AnonymousUser()
    return _plain(entry) if own else None


def _is_own(entry: Entry, submission: UUID | None) -> bool:
    own = Submission.objects.filter(entry=entry)
    return submission is not None and own.filter(pk=submission).exists()


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

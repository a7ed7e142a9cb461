"""What the pages show on which admins look after accounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.core.paginator import Page

from kbench_web.models import Invitation
from kbench_web.people.forms import InvitationForm, QuotaForm, SignUpForm
from runs_app.core.work.limits import Limits
from runs_app.submitting.quota import Quota


@dataclass(frozen=True, kw_only=True)
class PeoplePage:
    """Accounts that fit `words` and `state`, and who may sign up.

    `address` repeats the two; `link` is a new invitation.
    """

    page: Page[User]
    words: str
    state: str
    address: str
    mode_form: SignUpForm
    form: InvitationForm
    link: str
    invitations: Iterable[Invitation]


@dataclass(frozen=True, kw_only=True)
class PersonPage:
    """One account: what it has used and its limits; `link` is one for a new password."""

    who: User
    form: QuotaForm
    link: str
    quota: Quota
    limits: Limits
    counts: Mapping[str, int]
    runs: int
    tokens: int
    sessions: int
    changes_open: bool

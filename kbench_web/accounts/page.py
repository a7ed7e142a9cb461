"""What the page of an account shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount

from kbench_web.accounts.forms import NameForm, TokenForm
from kbench_web.models import ApiToken
from runs_app.models import Agent, Evaluation
from runs_app.submitting.quota import Quota


@dataclass(frozen=True, kw_only=True)
class AccountPage:
    """A person's tokens, quota and submissions; `created` is a new token, which is shown once.

    `addresses` is None where the site sends no e-mail.
    """

    form: TokenForm
    created: str
    tokens: Iterable[ApiToken]
    quota: Quota
    evaluations: Iterable[Evaluation]
    person: Agent | None
    agents: Iterable[Agent]
    sessions: int
    addresses: Iterable[EmailAddress] | None
    links: Iterable[SocialAccount]
    has_providers: bool


@dataclass(frozen=True, kw_only=True)
class FormPage:
    """A form with its purpose, and the label of its button."""

    form: NameForm
    title: str
    lede: str
    button: str


@dataclass(frozen=True, kw_only=True)
class SaidPage:
    """A message, and a link that leads on."""

    title: str
    lede: str
    back: str
    back_words: str

"""Names of people: which are free, and how somebody takes another one, or none any more."""

from __future__ import annotations

from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from kbench_web.accounts.sessions import end_sessions
from kbench_web.models import ApiToken
from runs_app.core.errors import NotAllowed, SubmissionError
from runs_app.core.work import lifecycle
from runs_app.models import (
    UNDER_WAY,
    Agent,
    Evaluation,
    PersonalQuota,
    Run,
    Submission,
)
from runs_app.optimiser.services.control import stop_run
from runs_app.submitting.authors import check_name
from tasks_app.people import account_closing, is_own_agent
from tasks_app.publishing.audit_log import forget_name

_KEPT = ("deleted", "kbench", "admin", "site")


def name_refusal(name: str, user: User | None = None) -> str:
    """Why `user`, or a new user, cannot be shown as `name`; empty if it is free."""
    if is_own_agent(name) or name.lower().startswith(_KEPT[:2]) or name.lower() in _KEPT:
        return f"The name {name} is reserved for the site itself."
    same = Q(username__iexact=name) | Q(first_name__iexact=name)
    agents = Agent.objects.filter(name__iexact=name)
    people = User.objects.filter(same)
    if user is not None:
        agents, people = agents.exclude(user=user), people.exclude(pk=user.pk)
    if people.exists() or agents.exists():
        return f"The name {name} already exists: choose another one."
    return ""


@transaction.atomic
def take_name(*, user: User, name: str, now: datetime) -> None:
    """Show `user` under `name` everywhere, also where results stand already; empty: the user name.

    Raises `SubmissionError` for a name that is none, or somebody else's.
    """
    name = name.strip()
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if name:
        check_name("name", name)
        if refusal := name_refusal(name, locked):
            raise SubmissionError("name", refusal)
    locked.first_name = "" if name == locked.get_username() else name
    locked.save(update_fields=["first_name"])
    Agent.objects.filter(user=locked).update(name=name or _own_agent_name(locked))


def _own_agent_name(user: User) -> str:
    """The user name, or one beside it where an agent has that."""
    name = user.get_username()
    taken = Agent.objects.filter(name=name).exclude(user=user).exists()
    return f"{name} (person {user.pk})" if taken else name


@transaction.atomic
def delete_account(*, user: User, now: datetime) -> None:
    """Forget who `user` was: from now on it is "deleted-N", and nobody can sign in to it.

    The row stays, because public results and the audit log refer to it. Raises `NotAllowed` for the
    site's last admin.
    """
    admins = User.objects.select_for_update(no_key=True).filter(is_staff=True, is_active=True)
    if [admin.pk for admin in admins] == [user.pk]:
        raise NotAllowed("", "you are the last admin of this site: make somebody else one first")
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    _stop_work(locked, now)
    Submission.objects.filter(author=locked, private=True, run=None).delete()
    Run.objects.filter(user=locked, private=True).delete()
    account_closing.send(sender=User, user=locked, now=now)
    for model in (ApiToken, PersonalQuota):
        model._default_manager.filter(user=locked).delete()
    EmailAddress.objects.filter(user=locked).delete()
    SocialAccount.objects.filter(user=locked).delete()
    end_sessions(locked)
    _rename(locked)


def _stop_work(user: User, now: datetime) -> None:
    """End what only its owner waits for."""
    for run in Run.objects.filter(user=user, status__in=(Run.Status.RUNNING, Run.Status.PAUSED)):
        stop_run(run=run, user=user, now=now)
    private = Evaluation.objects.filter(
        submission__author=user, submission__private=True, status__in=UNDER_WAY
    )
    for evaluation in private.select_for_update(of=("self",)):
        lifecycle.cancel(evaluation, reason="its owner deleted the account", now=now)


def _rename(user: User) -> None:
    before, after = user.get_username(), f"deleted-{user.pk}"
    forget_name(before, after)
    Agent.objects.filter(user=user).update(name=after, description="")
    user.username, user.first_name, user.last_name, user.email = after, "", "", ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.last_login = None
    user.set_unusable_password()
    user.save()
    user.groups.clear()
    user.user_permissions.clear()

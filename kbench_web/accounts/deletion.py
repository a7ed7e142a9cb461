"""Delete an account: what is private goes, what is public stays without the name."""

from __future__ import annotations

from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db import transaction

from kbench_web.accounts.sessions import end_sessions
from kbench_web.models import ApiToken
from runs_app.core.errors import NotAllowed
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
from tasks_app.people import account_closing
from tasks_app.publishing.audit_log import forget_name


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

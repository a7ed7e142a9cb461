"""What admins change about an account, each with an entry of the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from kbench_web.accounts.sessions import end_sessions
from runs_app.core.errors import NotAllowed, WrongState
from runs_app.core.work.admins import check_admin, checked_reason
from runs_app.models import PersonalQuota
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry

QUOTAS = ("waiting", "per_day", "running_runs", "usd_per_day")


@transaction.atomic
def set_active(*, person: User, active: bool, reason: str, user: User, now: datetime) -> None:
    """Let somebody in again, or nobody in by that account; its work and results stay.

    Raises `NotAllowed` for oneself, for the last admin, and for a superuser unless `user` is one.
    """
    locked = _locked(person, user)
    if locked.is_active == active:
        raise WrongState("", "the account is already in that state")
    why = checked_reason(reason, "reason")
    locked.is_active = active
    locked.save(update_fields=["is_active"])
    if not active:
        end_sessions(locked)
    _note(AuditEntry.Kind.ACCOUNT, locked, user, now, why, {"active": active})


@transaction.atomic
def set_admin(*, person: User, admin: bool, reason: str, user: User, now: datetime) -> None:
    """Make somebody an admin of this site, or no longer one; raises as `set_active`."""
    locked = _locked(person, user)
    if locked.is_staff == admin:
        raise WrongState("", "the account is already in that state")
    if admin and not locked.is_active:
        raise WrongState("", "activate the account first")
    why = checked_reason(reason, "reason")
    locked.is_staff = admin
    locked.is_superuser = admin and user.is_superuser
    locked.save(update_fields=["is_staff", "is_superuser"])
    _note(AuditEntry.Kind.ACCOUNT, locked, user, now, why, {"admin": admin})


@transaction.atomic
def set_quota(
    *, person: User, values: Mapping[str, object], reason: str, user: User, now: datetime
) -> None:
    """Give somebody limits of one's own; None for the site's. Raises `SubmissionError`."""
    check_admin(user)
    why = checked_reason(reason, "reason")
    chosen = {name: values.get(name) for name in QUOTAS}
    if any(value is not None for value in chosen.values()):
        PersonalQuota.objects.update_or_create(user=person, defaults=chosen)
    else:
        PersonalQuota.objects.filter(user=person).delete()
    details = {name: "the site's" if value is None else value for name, value in chosen.items()}
    _note(AuditEntry.Kind.QUOTA, person, user, now, why, details)


@transaction.atomic
def reset_link(*, person: User, user: User, now: datetime) -> str:
    """The address under which somebody can choose a new password, once, within three days."""
    locked = _locked(person, user)
    if not locked.is_active:
        raise WrongState("", "activate the account first")
    key = f"{user_pk_to_url_str(locked)}-{default_token_generator.make_token(locked)}"
    uid, _, token = key.partition("-")
    _note(AuditEntry.Kind.ACCOUNT, locked, user, now, "", {"password": "created a reset link"})
    return reverse("account_reset_password_from_key", kwargs={"uidb36": uid, "key": token})


@transaction.atomic
def end_all_sessions(*, person: User, user: User, now: datetime) -> int:
    """Sign somebody out everywhere; how many sessions ended."""
    locked = _locked(person, user)
    ended = end_sessions(locked)
    _note(AuditEntry.Kind.ACCOUNT, locked, user, now, "", {"sessions": f"ended {ended}"})
    return ended


def _locked(person: User, user: User) -> User:
    """The account's row, if `user` may change it."""
    check_admin(user)
    locked = User.objects.select_for_update(no_key=True).get(pk=person.pk)
    if locked.pk == user.pk:
        raise NotAllowed("", "this is your own account: ask another admin to do it")
    if locked.is_superuser and not user.is_superuser:
        raise NotAllowed("", "only a superuser may change a superuser's account")
    return locked


def _note(
    kind: AuditEntry.Kind,
    person: User,
    user: User,
    now: datetime,
    reason: str,
    details: Mapping[str, object],
) -> None:
    add_entry(
        kind, now=now, actor=user, about=person.get_username(), reason=reason, details=details
    )

"""Who can create an account: everybody, who is invited, or nobody."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from kbench_web.accounts.tokens import digest
from kbench_web.models import Invitation, SignUpPolicy
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry

PARAMETER = "invitation"
"""Name of the parameter of an invitation's address, and of its place in the session."""

_LIFETIME = timedelta(days=14)


class InvitationGoneError(Exception):
    """Somebody else has used the invitation in the meantime, or it has expired."""


def sign_up_mode() -> SignUpPolicy.Mode:
    """Who can create an account now."""
    policy = SignUpPolicy.objects.first()
    return SignUpPolicy.Mode(policy.mode if policy else settings.SIGN_UP)


@transaction.atomic
def decide_sign_up(*, mode: SignUpPolicy.Mode, user: User, now: datetime) -> None:
    """Decide who may open an account from now on."""
    before = sign_up_mode()
    SignUpPolicy.objects.create(mode=mode, decided_by=user, decided_at=now)
    details = {"accounts": f"from {before.label} to {mode.label}"}
    add_entry(AuditEntry.Kind.SIGN_UP, now=now, actor=user, about="sign-up", details=details)


@transaction.atomic
def invite(*, note: str, user: User, now: datetime) -> tuple[Invitation, str]:
    """A new invitation and its secret, which is stored nowhere and so can be shown only now."""
    secret = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        note=note,
        digest=digest(secret),
        made_by=user,
        created_at=now,
        expires_at=now + _LIFETIME,
    )
    add_entry(AuditEntry.Kind.INVITED, now=now, actor=user, about=note)
    return invitation, secret


@transaction.atomic
def revoke(*, invitation: Invitation, user: User, now: datetime) -> bool:
    """Make an invitation useless; False if it was used or revoked before."""
    if not valid_invitations(now).filter(pk=invitation.pk).update(revoked_at=now):
        return False
    details = {"invitation": "revoked"}
    add_entry(AuditEntry.Kind.INVITED, now=now, actor=user, about=invitation.note, details=details)
    return True


def valid_invitations(now: datetime) -> QuerySet[Invitation]:
    """Those that somebody may still use."""
    return Invitation.objects.filter(used_at=None, revoked_at=None, expires_at__gt=now)


def note_invitation(request: HttpRequest) -> None:
    """Keep the invitation of an address in the session, so that it lasts through a sign-up."""
    if secret := request.GET.get(PARAMETER, ""):
        request.session[PARAMETER] = digest(secret)


def may_sign_up(request: HttpRequest, now: datetime) -> bool:
    """Whether whoever sends this request may open an account."""
    mode = sign_up_mode()
    if mode is SignUpPolicy.Mode.INVITATION:
        kept = request.session.get(PARAMETER, "")
        return valid_invitations(now).filter(digest=kept).exists()
    return mode is SignUpPolicy.Mode.OPEN


def use_invitation(request: HttpRequest, user: User, now: datetime) -> None:
    """Use up the request's invitation for a new account; call it in the account's transaction.

    Raises `InvitationGoneError` if one is needed and somebody was faster.
    """
    kept = request.session.pop(PARAMETER, "")
    used = valid_invitations(now).filter(digest=kept).update(used_at=now, used_by=user)
    if not used and sign_up_mode() is not SignUpPolicy.Mode.OPEN:
        raise InvitationGoneError

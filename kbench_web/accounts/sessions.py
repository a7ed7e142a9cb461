"""Sessions of a person: listed, and ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from tasks_app.people import AuthenticatedRequest


@dataclass(frozen=True)
class SessionRow:
    """A session, and whether it is the one that looks."""

    session: UserSession
    current: bool


def live_sessions(user: User, now: datetime) -> list[UserSession]:
    """The sessions in which `user` is signed in, newest first."""
    rows = UserSession.objects.filter(user=user)
    keys = Session.objects.filter(
        expire_date__gt=now, session_key__in=rows.values("session_key")
    ).values_list("session_key", flat=True)
    return list(rows.filter(session_key__in=list(keys)).order_by("-created_at", "-pk"))


def end_sessions(user: User, *, but: str | None = None) -> int:
    """End all sessions of `user`, except that with the key `but`; how many."""
    rows = UserSession.objects.filter(user=user).exclude(session_key=but or "")
    keys = list(rows.values_list("session_key", flat=True))
    ended, _ = Session.objects.filter(session_key__in=keys).delete()
    rows.delete()
    return ended


def end_other_sessions(request: HttpRequest, user: User | None = None) -> None:
    """End all sessions of who asks, or of `user`, but that of the request."""
    owner = user or request.user
    if isinstance(owner, User):
        end_sessions(owner, but=request.session.session_key)


@login_required
@never_cache
@require_safe
def sessions(request: AuthenticatedRequest) -> HttpResponse:
    """Where one is signed in."""
    key = request.session.session_key
    if not UserSession.objects.filter(session_key=key).exists():  # older than this list
        UserSession.objects.create_from_request(request)
    found = live_sessions(request.user, timezone.now())
    rows = [SessionRow(row, row.session_key == key) for row in found]
    return render(request, "kbench_web/accounts/sessions.html", {"sessions": rows})


@login_required
@require_POST
def end_session(request: AuthenticatedRequest, session_id: int) -> HttpResponse:
    """Sign out elsewhere."""
    row = get_object_or_404(UserSession, pk=session_id, user=request.user)
    row.end()
    messages.success(request, "That session has ended.")
    return redirect("usersessions_list")


@login_required
@require_POST
def end_all_others(request: AuthenticatedRequest) -> HttpResponse:
    """Sign out everywhere else."""
    ended = end_sessions(request.user, but=request.session.session_key)
    messages.success(request, f"{ended} other session(s) ended.")
    return redirect("usersessions_list")

"""Who asks: somebody signed in, or a visitor; and names, of people and of kbench's own agents."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import Case, F, When
from django.dispatch import Signal
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

Viewer = User | AnonymousUser
"""For whom something is shown."""

STOP_ASKING = 286
"""The status with which htmx takes an answer and asks no more."""

account_closing = Signal()
"""An account is being deleted. Receivers forget what is private. Arguments: `user`, `now`."""


class AuthenticatedRequest(HttpRequest):
    """A request that has passed a sign-in: `login_required`, or a token of the API."""

    user: User


def admins_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answers 403 to everybody else."""

    @functools.wraps(view)
    def checked(request: HttpRequest, *arguments: object, **options: object) -> HttpResponse:
        if not (request.user.is_authenticated and request.user.is_active and request.user.is_staff):
            raise PermissionDenied
        return view(request, *arguments, **options)

    return checked


def signed_in(*parts: str) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """A view for those who are signed in, which does not send htmx to the sign-in page.

    That page would stand in the middle of another, and what is written there would be lost. `parts`
    are ids of elements that the view answers for, the usual one first.
    """

    def decorate(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @functools.wraps(view)
        def checked(request: HttpRequest, *arguments: object, **options: object) -> HttpResponse:
            if request.user.is_authenticated or request.headers.get("HX-Request") != "true":
                return login_required(view)(request, *arguments, **options)
            target = request.headers.get("HX-Target", "")
            page = request.htmx.current_url_abs_path or "/"  # type: ignore[attr-defined]
            context = {"part": target if target in parts else parts[0], "next": page}
            return render(request, "parts/signed_out.html", context, status=STOP_ASKING)

        return checked

    return decorate


def role_of(user: User, owner_id: int) -> str:
    """As what `user` acts on something of this owner; stored in place of a name, which may go."""
    return "its owner" if user.pk == owner_id else "an admin"


def shown_name(user: AbstractBaseUser | None) -> str:
    """The name under which everybody sees somebody: the pseudonym, or else the user name.

    The column `first_name` of Django's user holds the pseudonym, so no list needs a join for it.
    """
    if not isinstance(user, User):
        return ""
    return user.first_name or user.get_username()


def shown_name_of(column: str) -> Case:
    """`shown_name` of the user in that column, for the database to read."""
    pseudonym = f"{column}__first_name"
    return Case(When(**{pseudonym: ""}, then=F(f"{column}__username")), default=F(pseudonym))


_KEPT = re.compile(r"kbench-(naive|good|tunable)|mskernelbench-.*|origin|.* \(shipped\)", re.I)
_OWN = re.compile(r"kbench-.*", re.I)  # runs enter theirs under that of their strategy


def is_kept_agent(name: str) -> bool:
    """Whether nobody else may write kernels under this name."""
    return _KEPT.fullmatch(name.strip()) is not None


def is_own_agent(name: str) -> bool:
    """Whether it is a name of kbench's own, which no kernel of somebody's draft may have."""
    return is_kept_agent(name) or _OWN.fullmatch(name.strip()) is not None

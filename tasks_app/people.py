"""Who asks: somebody who is signed in, or a visitor; and under which name they are shown."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db.models import Case, F, When
from django.http import HttpRequest, HttpResponse

Viewer = User | AnonymousUser
"""For whom something is shown."""


class AuthenticatedRequest(HttpRequest):
    """A request that has passed a sign-in: `login_required`, or a token of the API."""

    user: User


def admins_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answers 403 to everybody else."""

    @functools.wraps(view)
    def checked(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        if not (request.user.is_authenticated and request.user.is_active and request.user.is_staff):
            raise PermissionDenied
        return view(request, *arguments, **options)

    return checked


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

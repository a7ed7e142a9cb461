"""Who asks: somebody who is signed in, or a visitor."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest

Viewer = User | AnonymousUser
"""For whom something is shown."""


class AuthenticatedRequest(HttpRequest):
    """A request that has passed a sign-in: `login_required`, or a token of the API."""

    user: User

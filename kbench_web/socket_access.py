"""Who opens a socket: a program with its token, or a browser with its session.

A token is shown on purpose, so any origin may send it. A cookie comes by itself, so only pages of
this site may open a socket with one: the same pages that may send its forms.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.security.websocket import WebsocketDenier
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone

from kbench_web.accounts.tokens import find_token
from kbench_web.models import ApiToken
from kbench_web.proxies import believe_trusted_proxies

UNAUTHORIZED = 4401
"""Close code of a socket whose token does not allow it; the counterpart of HTTP's 401."""
App = Callable[..., Awaitable[object]]


class SocketAccess:
    """Sockets behind a token or a session."""

    def __init__(self, sockets: App) -> None:
        """Let the right ones through to `sockets`."""
        self.sockets = sockets
        self.of_browsers: App = AuthMiddlewareStack(sockets)
        self.of_strangers: App = WebsocketDenier.as_asgi()

    async def __call__(self, scope: dict[str, Any], receive: App, send: App) -> None:
        """Pass the connection on, or close it."""
        headers = dict(scope["headers"])
        if b"authorization" not in headers:
            answer = self.of_browsers if _is_from_here(scope) else self.of_strangers
            await answer(scope, receive, send)
            return
        scheme, _, text = headers[b"authorization"].decode("latin-1").strip().partition(" ")
        shown = text.strip() if scheme.lower() == "bearer" else ""
        user = await database_sync_to_async(_owner)(shown)
        if user is not None:
            await self.sockets({**scope, "user": user}, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})  # the code of an accepted socket alone is told
        await send({"type": "websocket.close", "code": UNAUTHORIZED})


def _is_from_here(scope: dict[str, Any]) -> bool:
    """Whether Django would take a form from the page that opens a socket: it compares origins."""
    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "ws"))
    request = ASGIRequest({**scope, "method": "GET", "scheme": scheme}, BytesIO())
    believe_trusted_proxies(request)
    if "HTTP_ORIGIN" not in request.META:
        return False
    forms = CsrfViewMiddleware(lambda _: HttpResponse())
    return bool(forms._origin_verified(request))  # type: ignore[attr-defined]  # Django's own rule


def _owner(text: str) -> object:
    """The user whose token this is; None if it does not allow reading."""
    now = timezone.now()
    token = find_token(text, now)
    if token is None or token.refusal(now) or ApiToken.Scope.READ.value not in token.scopes:
        return None
    return token.user

"""Where HTTP and WebSocket connections enter the site."""

from __future__ import annotations

import gc
import os
from typing import Any, cast

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import get_resolver, re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
http = get_asgi_application()  # sets Django up, so it goes before any import of models

from kbench_web import held_database, prompt_sockets  # noqa: E402
from kbench_web.gateway import Gateway  # noqa: E402
from kbench_web.socket_access import SocketAccess  # noqa: E402
from runs_app.consumers import websocket_urlpatterns  # noqa: E402


async def no_socket(scope: Any, receive: Any, send: Any) -> None:
    """Refuse a WebSocket to an address that none has; the server answers the handshake with 403."""
    await receive()
    await send({"type": "websocket.close"})


prompt_sockets.install()
held_database.install()
_sockets = URLRouter([*websocket_urlpatterns, re_path("", cast(Any, no_socket))])
application = ProtocolTypeRouter(
    {
        "http": Gateway(http),
        "websocket": SocketAccess(_sockets),
    }
)

# A page of thousands of objects has Python look for cycles in all that there is: what is loaded by
# now stays for good, and looking through it again took the matrix two thirds of its time.
len(get_resolver().url_patterns)  # loads every view
gc.collect()
gc.freeze()

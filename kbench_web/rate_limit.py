"""Counts what a client does in a minute, and limits uploads."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

_WINDOW_S = 60


def count(key: str, more: int = 1) -> int:
    """Events of this key in the running minute, `more` included; 0 where none can be kept.

    Without the cache nothing is limited: refusing everybody would be the worse failure.
    """
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    name = f"rate:{digest}:{int(time.time()) // _WINDOW_S}"
    try:
        cache.add(name, 0, timeout=2 * _WINDOW_S)
        return cache.incr(name, more)
    except (RedisError, ValueError) as error:
        log.warning("requests are not counted: %s", error)
        return 0


def ends_in_s() -> int:
    """Seconds until the running minute ends."""
    return _WINDOW_S - int(time.time()) % _WINDOW_S


class UploadRateLimitMiddleware:
    """Answers 429 to who uploads tasks too often: reading one takes time, also if it is refused."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Count an upload before anything of it is looked at."""
        is_upload = request.method == "POST" and _takes_uploads(request.path_info)
        if not (is_upload and request.user.is_authenticated):
            return self.get_response(request)
        limit = settings.UPLOADS_PER_MINUTE
        if count(f"upload {request.user.pk}") <= limit:
            return self.get_response(request)
        reset_s = ends_in_s()
        context = {"limit": limit, "reset_s": reset_s}
        response = render(request, "429.html", context, status=429)
        response["Retry-After"] = str(reset_s)
        return response


def _takes_uploads(path: str) -> bool:
    try:
        return getattr(resolve(path).func, "takes_uploads", False)
    except Resolver404:
        return False

"""Limits how many API requests a client may make a minute, and shows what is left."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, JsonResponse
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

_WINDOW_S = 60


class ApiRateLimitMiddleware:
    """Answers 429 past the limit; puts RateLimit-* headers on every answer of the API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        """Wrap the next handler."""
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Count the request, then pass it on or refuse it."""
        if not request.path.startswith("/api/"):
            return self.get_response(request)
        limit = settings.API_REQUESTS_PER_MINUTE
        reset_s = _WINDOW_S - int(time.time()) % _WINDOW_S
        remaining = limit - _count(request)
        if remaining >= 0:
            response = self.get_response(request)
        else:
            reason = f"more than {limit} requests a minute; try again in {reset_s} s"
            response = JsonResponse({"field": "", "reason": reason}, status=429)
            response["Retry-After"] = str(reset_s)
        response["RateLimit-Limit"] = str(limit)
        response["RateLimit-Remaining"] = str(max(remaining, 0))
        response["RateLimit-Reset"] = str(reset_s)
        return response


def _count(request: HttpRequest) -> int:
    """Requests of this client in the running minute, this one included."""
    client = request.headers.get("Authorization") or str(request.META.get("REMOTE_ADDR", ""))
    digest = hashlib.sha256(client.encode()).hexdigest()[:32]
    key = f"api-rate:{digest}:{int(time.time()) // _WINDOW_S}"
    try:
        cache.add(key, 0, timeout=2 * _WINDOW_S)
        return cache.incr(key)
    except (RedisError, ValueError) as error:
        # The quotas in the database still hold; refusing everybody would be the worse failure.
        log.warning("the API's requests are not counted: %s", error)
        return 0

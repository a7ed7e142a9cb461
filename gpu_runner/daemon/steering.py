"""Whether the site's admins want a runner to take work."""

from __future__ import annotations

import time
from collections.abc import Callable

import redis

from gpu_runner.data.event import STEERING


class Steering:
    """Reads from Redis why this runner may take no work; looks once a period."""

    def __init__(
        self,
        connection: redis.Redis,
        name: str,
        period_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """For the runner of this name; nothing is read yet."""
        self._connection = connection
        self._name = name
        self._period_s = period_s
        self._clock = clock
        self._due_at = clock()
        self._reason = ""

    def reason(self) -> str:
        """Why no work may be taken, or empty; what was said last while Redis is away."""
        if self._clock() >= self._due_at:
            self._due_at = self._clock() + self._period_s
            try:
                said = self._connection.hget(STEERING, self._name)
            except redis.RedisError:
                return self._reason  # the heartbeat says that Redis is away
            self._reason = said.decode(errors="replace") if isinstance(said, bytes) else ""
        return self._reason

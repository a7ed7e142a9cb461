"""Unit tests of the site run without Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.queued import Jobs


@pytest.fixture(autouse=True)
def _site_without_redis(request: pytest.FixtureRequest) -> None:
    """Sockets and cache live in memory, and nothing answers where Redis should be."""
    if request.node.get_closest_marker("site") is None:
        return
    settings = request.getfixturevalue("settings")
    settings.SUBMIT_SHIPPED_KERNELS = False  # tests of it say so
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    # A cache for each test: what one has counted does not limit the next.
    memory = "django.core.cache.backends.locmem.LocMemCache"
    settings.CACHES = {"default": {"BACKEND": memory, "LOCATION": request.node.nodeid}}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Stands in for RQ."""
    from runs_app.messaging import queues
    from tests.unit.queued import Jobs

    fake = Jobs()
    for name in ("enqueue", "drop", "look", "waiting_jobs"):
        monkeypatch.setattr(queues, name, getattr(fake, name))
    return fake

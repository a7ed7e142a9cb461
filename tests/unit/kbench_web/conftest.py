"""A runner of another host, and the Redis in which it has a mailbox."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from runs_app.core.messaging import orders
from runs_app.core.runners import tokens
from runs_app.models import Runner
from tests import factories as make
from tests.unit.kbench_web.asking import TEXT


@pytest.fixture
def mailboxes(redis_url: str, settings: Any) -> Redis:
    """The runners' Redis."""
    settings.RUNNERS_REDIS_URL = redis_url
    return orders.connection()


@pytest.fixture
def lab_runner(mailboxes: Redis) -> Runner:
    """One that has said that it is there."""
    token = make.make_runner_token(name="lab", digest=tokens.digest(TEXT), trusted=False)
    return make.make_runner(token=token, name="gpu-1")

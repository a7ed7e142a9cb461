"""Starts daemons for the tests, and ends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.daemon.config import DaemonConfig
from tests.unit.gpu_runner.daemon.running import RunningDaemon, supervise

StartDaemon = Callable[..., RunningDaemon]


@pytest.fixture
def start_daemon(redis_url: str, tmp_path: Path) -> Iterator[StartDaemon]:
    """Starts daemons and sees to it that none outlives the test."""
    started: list[RunningDaemon] = []

    def start(fault: str = "", **settings: Any) -> RunningDaemon:
        settings = {
            "redis_url": redis_url,
            "cache_folder": tmp_path / "cache",
            "heartbeat_s": 0.3,
            "drain_timeout_s": 20.0,
            "people_slots": 0,
            "ready": False,
            **settings,
        }
        daemon = RunningDaemon(DaemonConfig(**settings), supervise, fault)
        started.append(daemon)
        return daemon

    yield start
    for daemon in started:
        daemon.kill()

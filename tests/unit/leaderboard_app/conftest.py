"""Fixtures of the tests about boards."""

from __future__ import annotations

import pytest

from runs_app.messaging import queues


@pytest.fixture(autouse=True)
def _no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent to a runner."""
    monkeypatch.setattr(queues, "enqueue", lambda evaluation: True)
    monkeypatch.setattr(queues, "drop", lambda evaluation, attempt: None)

"""Fixtures of the tests about boards."""

from __future__ import annotations

import pytest

from runs_app.core.messaging import orders


@pytest.fixture(autouse=True)
def _no_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent to a runner."""
    monkeypatch.setattr(orders, "enqueue", lambda evaluation: True)
    monkeypatch.setattr(orders, "drop", lambda evaluation, attempt: None)

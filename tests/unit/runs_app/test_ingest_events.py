"""What the ingester knows of its own gaps: silence while it did not listen proves nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.dispatch import Signal

from runs_app.management.commands import ingest_events
from tests import factories as make


class Clock:
    """What `timezone.now` says."""

    def __init__(self) -> None:
        self.second = 0.0

    def now(self) -> datetime:
        """The time that a test has set."""
        return make.later(self.second)


@pytest.fixture
def since(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """`listening_since` of each time that something was looked after."""
    found: list[datetime] = []

    def reconcile(*, now: datetime, listening_since: datetime, **_: Any) -> int:
        found.append(listening_since)
        return 0

    monkeypatch.setattr(ingest_events, "reconcile", reconcile)
    monkeypatch.setattr(ingest_events, "_RECONCILE_S", 0.0)
    monkeypatch.setattr(ingest_events.hooks, "tick", Signal())
    monkeypatch.setattr(ingest_events, "reconcile_runs", lambda **_: 0)
    return found


def test_an_ingester_that_stood_still_begins_to_listen_anew(
    since: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(ingest_events, "timezone", clock)
    command = ingest_events.Command()
    for clock.second in (0, 6, 15, 105, 106):
        command._reconcile(())
    assert since == [make.later(second) for second in (0, 0, 0, 105, 105)]

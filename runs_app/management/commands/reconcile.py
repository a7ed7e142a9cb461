"""Look once after runners' jobs and runs that nobody works on any more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from runs_app.challenges.settle import settle_challenges
from runs_app.runners.reconcile import reconcile
from runs_app.runners.reconcile_runs import reconcile_runs

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


class Command(BaseCommand):
    """`manage.py reconcile`."""

    help = (
        "Queue again or retry, now, what ingest_events would find by itself every few seconds."
        " Meant for when it is not running: events that wait in Redis are not looked at."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run one round and say what it touched."""
        now = timezone.now()
        count = reconcile(now=now, listening_since=_EVER)
        calls = reconcile_runs(now=now, listening_since=_EVER)
        settled = settle_challenges(now=now)
        self.stdout.write(
            f"{count} job(s) and {calls} call(s) taken up again,"
            f" {settled} entries and challenges settled"
        )

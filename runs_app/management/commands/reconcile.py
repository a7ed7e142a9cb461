"""Look once after runners' jobs and runs that nobody works on any more."""

from __future__ import annotations

from datetime import UTC, datetime

from django.core.management.base import BaseCommand
from django.utils import timezone

from runs_app.core import hooks
from runs_app.core.runners.reconcile import reconcile
from runs_app.optimiser.services.reconcile_runs import reconcile_runs

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


class Command(BaseCommand):
    """`manage.py reconcile`."""

    help = (
        "Queue again or retry, now, what ingest_events would find by itself every few seconds. Use "
        "it when ingest_events is not running; it ignores events that wait in Redis."
    )

    def handle(self, *args: object, **options: object) -> None:
        """Run one round and say what it touched."""
        now = timezone.now()
        count = reconcile(now=now, listening_since=_EVER)
        calls = reconcile_runs(now=now, listening_since=_EVER)
        hooks.tick.send(sender=Command, now=now)
        self.stdout.write(f"{count} job(s) and {calls} call(s) taken up again")

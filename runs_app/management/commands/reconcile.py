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
        "Requeue or retry lost jobs and calls now. ingest_events does this by itself every few "
        "seconds, so you need it only when ingest_events isn't running. It ignores events that "
        "are waiting in Redis."
    )

    def handle(self, *args: object, **options: object) -> None:
        now = timezone.now()
        count = reconcile(now=now, listening_since=_EVER)
        calls = reconcile_runs(now=now, listening_since=_EVER)
        hooks.tick.send(sender=Command, now=now)
        self.stdout.write(f"{count} job(s) and {calls} call(s) resumed")

"""Replay a stored run, and say where it would go another way today."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs_app.models import Run
from runs_app.optimiser.services.replay import replay_run


class Command(BaseCommand):
    """`manage.py replay_run RUN_ID`."""

    help = (
        "Repeat every decision of a stored run, without network access, and print any differences "
        "from what was stored. The exit status is 1 if there are any."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=UUID, metavar="RUN_ID", help="the id in the run's address")

    def handle(self, *args: Any, **options: Any) -> None:
        run = Run.objects.select_related("task_version").filter(pk=options["run"]).first()
        if run is None:
            raise CommandError(f"there is no run {options['run']}")
        report = replay_run(run)
        self.stdout.write(f"{report.steps} step(s), {report.events} event(s)")
        for difference in report.differences:
            self.stdout.write(f"event {difference.at}")
            self.stdout.write(f"  stored:   {difference.stored}")
            self.stdout.write(f"  replayed: {difference.replayed}")
        if report.differences:
            raise CommandError(f"{len(report.differences)} difference(s)")
        self.stdout.write("no differences")

"""Put one evaluation and one run on a new site's first page."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from runs_app.core.errors import SubmissionError
from runs_app.core.messaging import orders
from runs_app.core.queue.devices import resolve_device
from runs_app.optimiser.services.start import start_demo_run
from runs_app.submitting.shipped import submit_demo


class Command(BaseCommand):
    """`manage.py demo [--device cpu]`."""

    help = (
        "Queue a quick evaluation of a shipped kernel if the device has no evaluations, and start "
        "a run that tunes one if there are no runs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--device", default="cpu")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            device = resolve_device(options["device"])
        except SubmissionError as error:
            raise CommandError(str(error)) from None
        if failure := orders.failure():
            raise CommandError(failure)
        now = timezone.now()
        evaluation = submit_demo(device=device, now=now)
        if evaluation is None:
            self.stdout.write(f"no demo: {device.slug} has evaluations, or no task has a kernel")
        else:
            self.stdout.write(evaluation.submission.get_absolute_url())
        run = start_demo_run(device=device, now=now)
        if run is None:
            self.stdout.write("no demo run: there are runs already, or there is no kernel to tune")
        else:
            self.stdout.write(run.get_absolute_url())

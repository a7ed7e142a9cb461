"""Put one evaluation on a new site's first page."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from runs_app import queues, services


class Command(BaseCommand):
    """`manage.py demo [--device cpu]`."""

    help = "Queue one quick evaluation of a shipped kernel, unless the device has evaluations."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare --device."""
        parser.add_argument("--device", default="cpu")

    def handle(self, *args: Any, **options: Any) -> None:
        """Queue it, and say where it can be watched."""
        try:
            device = services.resolve_device(options["device"])
        except services.SubmissionError as error:
            raise CommandError(str(error)) from None
        if failure := queues.failure():
            raise CommandError(failure)
        evaluation = services.submit_demo(device=device, now=timezone.now())
        if evaluation is None:
            self.stdout.write(f"no demo: {device.slug} has evaluations, or no task has a kernel")
        else:
            self.stdout.write(evaluation.submission.get_absolute_url())

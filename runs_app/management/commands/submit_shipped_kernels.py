"""Enter the kernels that come with the tasks."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.verdict import Mode
from runs_app import queues, selectors, services


class Command(BaseCommand):
    """`manage.py submit_shipped_kernels [--device SLUG] [--mode ranked]`."""

    help = "Queue every shipped kernel that has no evaluation yet on the device."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare --device and --mode."""
        parser.add_argument("--device", default="", help="default: every known device")
        parser.add_argument("--mode", default=Mode.RANKED.value, choices=[m.value for m in Mode])

    def handle(self, *args: Any, **options: Any) -> None:
        """Queue them, and say how many."""
        try:
            chosen = [services.resolve_device(options["device"])] if options["device"] else None
        except services.SubmissionError as error:
            raise CommandError(str(error)) from None
        if failure := queues.failure():
            raise CommandError(failure)
        for device in chosen or selectors.devices():
            entered = services.submit_shipped_kernels(
                device=device, now=timezone.now(), mode=Mode(options["mode"])
            )
            self.stdout.write(f"{len(entered)} shipped kernel(s) queued on {device.slug}")

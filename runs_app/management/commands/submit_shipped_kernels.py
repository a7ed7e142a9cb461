"""Enter the kernels that come with the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.formats.mskernelbench import FORMAT
from gpu_runner.data.verdict import Mode
from runs_app.core.errors import SubmissionError
from runs_app.core.messaging import orders
from runs_app.core.queue.devices import devices, resolve_device
from runs_app.submitting.shipped import submit_first_kernels, submit_offers, submit_shipped_kernels
from tasks_app.formats.importing import import_path
from tasks_app.models import TaskVersion
from tasks_app.selectors import published_tasks


class Command(BaseCommand):
    """`manage.py submit_shipped_kernels [--device SLUG] [--mode M] [--agent A] [--task T...]`.

    `--tuned` and `--origin PATH` choose in other ways.
    """

    help = (
        "Queue every shipped kernel that hasn't been evaluated on the device yet. With --origin,"
        " queue MSKernelBench's kernels at PATH that match a task's signature."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--device", default="", help="default: every known device")
        parser.add_argument("--mode", default=Mode.RANKED.value, choices=[m.value for m in Mode])
        parser.add_argument("--agent", default="", help="such as kbench-best; default: all")
        parser.add_argument("--task", nargs="*", default=[], metavar="NAME", help="default: all")
        parser.add_argument(
            "--tuned",
            action="store_true",
            help="only for tasks with a tuned kernel, such as for a new device",
        )
        parser.add_argument("--origin", type=Path, metavar="PATH", help="origin/{fp32,bf16}/*.cu")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            chosen = [resolve_device(options["device"])] if options["device"] else None
        except SubmissionError as error:
            raise CommandError(str(error)) from None
        if failure := orders.failure():
            raise CommandError(failure)
        path: Path | None = options["origin"]
        offers = import_path(path, FORMAT).offers if path is not None else []
        mode = Mode(options["mode"])
        for device in chosen or devices():
            now = timezone.now()
            if options["tuned"]:
                entered = submit_first_kernels(device=device, now=now)
            elif path is None:
                entered = submit_shipped_kernels(
                    device=device,
                    now=now,
                    mode=mode,
                    agent=options["agent"],
                    versions=self._versions(options["task"]),
                )
            else:
                entered = submit_offers(offers=offers, device=device, now=now, mode=mode)
            self.stdout.write(f"{len(entered)} shipped kernel(s) queued on {device.slug}")

    @staticmethod
    def _versions(names: Sequence[str]) -> list[TaskVersion] | None:
        """Current versions of these tasks; None for those of all."""
        current = {task.slug: task.current_version for task in published_tasks()}
        for name in names:
            if current.get(name) is None:
                raise CommandError(f"--task: no public task is called {name!r}")
        found = [version for name in names if (version := current[name])]
        return found or None

"""Write the results of this site's boards into a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.codec import DataError
from runs_app.features.transfer import faults, files
from runs_app.features.transfer.export import exported
from runs_app.models import Device
from tasks_app.selectors import published_tasks

_LOCAL = re.compile(r"localhost|127\.|\[|\*|\.")


class Command(BaseCommand):
    """`manage.py export_results FILE [--site NAME] [--device SLUG] [--task SLUG] [--note TEXT]`."""

    help = (
        "Write the ranked results of public submissions for the tasks' current versions into FILE:"
        " .json, .json.gz or .parquet. It contains nothing private and no hidden workloads. Another"
        " site shows them with `manage.py import_results FILE`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, metavar="FILE")
        parser.add_argument(
            "--site", default="", help="name of this site, as other sites will show it"
        )
        parser.add_argument("--device", default="", help="export only results for this device")
        parser.add_argument("--task", default="", help="export only results for this task")
        parser.add_argument("--note", default="", help="a note about them for readers")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        site = options["site"].strip() or own_name()
        device, task = options["device"], options["task"]
        known = list(Device.objects.filter(imported_from="").values_list("slug", flat=True))
        if device and device not in known:
            have = ", ".join(known) or "none"
            raise CommandError(f"--device: there is no device {device!r}; known devices: {have}")
        if task and not published_tasks().filter(slug=task).exists():
            raise CommandError(f"--task: there is no published task {task!r}")
        now = timezone.now()
        try:
            files.check_name(path)
            file, left_out = exported(
                site=site, note=options["note"].strip(), now=now, device=device, task=task
            )
            faults.refuse_wrong(file, now)
            files.write(file, path)
        except (files.FileError, DataError) as error:
            raise CommandError(f"nothing was written: {error}") from None
        for line in left_out:
            self.stderr.write(f"left out: {line}")
        count = len(file.results)
        boards = len({(record.device, record.task, record.direction) for record in file.results})
        self.stdout.write(f"{path}: {count} result(s) of {boards} board(s)")


def own_name() -> str:
    """The host under which the site is known; raises `CommandError` where it has no such name."""
    host = settings.ALLOWED_HOSTS[0] if settings.ALLOWED_HOSTS else ""
    if not host or _LOCAL.match(host):
        raise CommandError("--site: say the name that other sites show for this one")
    return str(host)

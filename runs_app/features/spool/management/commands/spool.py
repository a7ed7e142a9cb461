"""Carry jobs to hosts that reach no site, and what came of them back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from runs_app.features.spool.services import SpoolError, export_spool, import_spool, take_back
from runs_app.models import Device


class Command(BaseCommand):
    """`manage.py spool export DIR --device SLUG`, `spool import DIR` and `spool cancel DIR`."""

    help = (
        "export: write a device's waiting jobs to DIR; runners won't take them anymore."
        " On the other host, `python -m gpu_runner work --spool DIR` runs them."
        " import: record their results; repeat it as often as you like."
        " cancel: requeue the jobs that DIR has no results for."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=("export", "import", "cancel"))
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument("--device", default="", help="slug of the device, such as nvidia-h100")
        parser.add_argument(
            "--new", default="", metavar="NAME", help="name of a GPU device to create"
        )
        parser.add_argument(
            "--most", type=int, default=1000, help="maximum number of jobs (default 1000)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        actions: dict[str, Callable[[Path, dict[str, object]], None]] = {
            "export": self._export,
            "import": self._import,
            "cancel": self._cancel,
        }
        try:
            actions[options["action"]](options["folder"], options)
        except (SpoolError, OSError) as error:
            raise CommandError(str(error)) from None

    def _export(self, folder: Path, options: dict[str, Any]) -> None:
        if options["most"] < 1:
            raise CommandError("--most must be at least 1")
        device = _device(options["device"], options["new"])
        count = export_spool(folder=folder, device=device, most=options["most"], now=timezone.now())
        self.stdout.write(f"{count} job(s) for {device.slug} written to {folder}")

    def _import(self, folder: Path, options: dict[str, object]) -> None:
        done = import_spool(folder=folder, now=timezone.now())
        self.stdout.write(
            f"{done.new} recorded, {done.known} already known, {done.unfinished} not done yet"
        )
        for line in done.refused:
            self.stderr.write(f"refused: {line}")
        if done.refused:
            raise CommandError(f"{len(done.refused)} job(s) refused")

    def _cancel(self, folder: Path, options: dict[str, object]) -> None:
        count = take_back(folder=folder, now=timezone.now())
        self.stdout.write(f"{count} job(s) are in the queue again")


def _device(slug: str, name: str) -> Device:
    if not slug:
        raise CommandError("specify the device whose jobs you want: --device SLUG")
    found = Device.objects.filter(pk=slug).first()
    if found is None and name:
        fields = {"kind": "cuda", "name": name, "created_at": timezone.now()}
        found = Device.objects.create(slug=slug, **fields)
    if found is None:
        known = ", ".join(Device.objects.values_list("slug", flat=True))
        raise CommandError(
            f"there is no device {slug!r}; known: {known}. --new NAME creates one for a GPU"
        )
    return found

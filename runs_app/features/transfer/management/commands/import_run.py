"""Show runs that other sites have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.codec import DataError
from runs_app.features.transfer import files
from runs_app.features.transfer.run_import import import_run

FOLDER = Path(__file__).resolve().parents[2] / "shipped_runs"


class Command(BaseCommand):
    """`manage.py import_run FILE...` or `manage.py import_run --shipped`."""

    help = (
        "Import the runs in the FILEs, written by `manage.py export_run`. They are read-only and "
        "say where they were measured. Runs that are already here stay as they are. If anything in "
        "a file is wrong, nothing from it is stored."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="*", type=Path, metavar="FILE")
        parser.add_argument(
            "--shipped", action="store_true", help="import the files that come with kbench, if any"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["paths"]) is options["shipped"]:
            raise CommandError("specify FILEs or --shipped")
        for path in options["paths"] or sorted(FOLDER.glob("*.json*")):
            try:
                run = import_run(document=files.read(path), now=timezone.now())
            except files.FileError as error:
                raise CommandError(f"nothing was stored: {error}") from None
            except DataError as error:
                first = str(error).split("\n", 1)[0]
                if not options["shipped"]:
                    raise CommandError(f"nothing from {path} was stored: {first}") from None
                self.stdout.write(f"{path.name} was left out: {first}")  # the task has changed here
                continue
            if run or not options["shipped"]:
                said = run.get_absolute_url() if run else "already known"
                self.stdout.write(f"{path.name}: {said}")

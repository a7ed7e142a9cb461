"""Load task folders into the database and publish them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.formats import FORMATS, catalog_folder
from tasks_app import loader, services


class Command(BaseCommand):
    """`manage.py load_tasks [PATH] [--format FORMAT]`."""

    help = (
        "Publish the task, or the folder of tasks, at PATH (the built-in tasks if left out)."
        " Unchanged tasks are left alone, changed ones get a new version."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare PATH and --format."""
        parser.add_argument("path", nargs="?", type=Path, default=None)
        parser.add_argument("--format", choices=FORMATS, default="auto")

    def handle(self, *args: Any, **options: Any) -> None:
        """Publish every task that can be read; exit status 1 if one could not."""
        path: Path = options["path"] or catalog_folder()
        tasks, errors = loader.load_tasks(path, options["format"])
        for publication in services.publish_all(tasks=tasks, now=timezone.now()):
            state = "published" if publication.is_new else "unchanged"
            self.stdout.write(f"{publication.version}: {state}")
        if errors:
            raise CommandError("\n".join(str(error) for error in errors))
        if not tasks:
            raise CommandError(f"no task in {path}")

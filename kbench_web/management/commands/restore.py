"""Restore a backup of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kbench_web.backup import services
from kbench_web.backup.archive import BackupError


class Command(BaseCommand):
    """`manage.py restore FILE [--replace]`."""

    help = (
        "Restore a backup made by `manage.py backup` into the database at DATABASE_URL."
        " Stop the site first."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", type=Path, help="a file written by `manage.py backup`"
        )
        parser.add_argument(
            "--replace", action="store_true", help="delete the database's current contents first"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = services.restore(options["file"], replace=options["replace"])
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"Restored the backup of {made.made_at}: each of its {len(made.rows)} tables has as"
            f" many rows as the backup says, {sum(made.rows.values()):,} in all.\n"
            "Start the site now. Within seconds, it requeues whatever was waiting."
        )

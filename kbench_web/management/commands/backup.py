"""Back up the site into one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from kbench_web.backup import services
from kbench_web.backup.archive import SECRET_KEY, BackupError


class Command(BaseCommand):
    """`manage.py backup FILE`."""

    help = (
        "Write a consistent copy of the database and the site's secret key to FILE. The site can "
        "keep running. `manage.py restore FILE` puts them back."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="such as kbench.tar.gz")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"].absolute()
        try:
            made = services.backup(path, now=timezone.now())
        except BackupError as error:
            raise CommandError(f"no backup was made: {error}") from None
        key = (
            "and the secret key"
            if SECRET_KEY in made.files
            else ("but not the secret key: keep the value of KBENCH_SECRET_KEY yourself")
        )
        self.stdout.write(
            f"{path} ({path.stat().st_size:,} bytes) contains {sum(made.rows.values()):,} rows in"
            f" {len(made.rows)} tables, {key}.\n"
            "Keep it where only you can read it. It doesn't include Redis: when you restore it, the"
            " site requeues whatever was waiting."
        )

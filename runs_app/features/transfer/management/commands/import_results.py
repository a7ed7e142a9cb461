"""Show results that another site has measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.codec import DataError
from runs_app.features.transfer import faults, files
from runs_app.features.transfer.files import Document
from runs_app.features.transfer.models import ResultImport
from runs_app.features.transfer.record import ResultFile
from runs_app.features.transfer.services import Imported, import_results

FOLDER = Path(__file__).resolve().parents[2] / "shipped_results"


def shipped_files() -> list[Path]:
    """Those that are there, by name."""
    return sorted(path for path in FOLDER.glob("*.json*") if path.is_file())


def unseen(path: Path) -> Document | None:
    """What the file says; None if it was imported before, so that a start costs next to nothing."""
    document = files.read(path)
    digest = faults.decode(document, ResultFile).digest()
    return None if ResultImport.objects.filter(digest=digest).exists() else document


class Command(BaseCommand):
    """`manage.py import_results FILE` or `manage.py import_results --shipped`."""

    help = (
        "Import the results in FILE, written by `manage.py export_results`, onto separate boards "
        "that say where they were measured. Existing results stay as they are. If anything in the "
        "file is wrong, nothing is stored."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", nargs="?", type=Path, default=None, metavar="FILE")
        parser.add_argument(
            "--shipped", action="store_true", help="import the files that come with kbench, if any"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path | None = options["path"]
        if (path is None) is not options["shipped"]:
            raise CommandError("specify a FILE or --shipped")
        for each in [path] if path is not None else shipped_files():
            document = _read(each, only_unseen=options["shipped"])
            if document is None:
                continue
            try:
                done = import_results(document=document, now=timezone.now())
            except DataError as error:
                raise CommandError(f"nothing from {each} was stored:\n{error}") from None
            for line in _lines(each, done):
                self.stdout.write(line)


def _read(path: Path, *, only_unseen: bool) -> files.Document | None:
    try:
        return unseen(path) if only_unseen else files.read(path)
    except files.FileError as error:
        raise CommandError(f"nothing was stored: {error}") from None
    except DataError as error:
        raise CommandError(f"nothing from {path} was stored:\n{error}") from None


def _lines(path: Path, done: Imported) -> list[str]:
    lines = [f"{path.name}: {done.new} new result(s), {done.known} already known"]
    if done.unknown_tasks:
        count, names = sum(done.unknown_tasks.values()), ", ".join(sorted(done.unknown_tasks))
        lines.append(f"left out: {count} for tasks or versions that this site lacks: {names}")
    return lines

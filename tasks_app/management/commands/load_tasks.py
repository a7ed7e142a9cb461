"""Load task folders into the database, and publish those that are sound."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.task import Task as TaskData
from tasks_app.formats import loader
from tasks_app.formats.importing import IMPORT_FORMATS, Import, Row, import_path, refused
from tasks_app.models import Soundness, TaskVersion
from tasks_app.publishing import import_report
from tasks_app.publishing.labels import label_imported, label_new
from tasks_app.publishing.services import admit_all
from tasks_app.publishing.snapshots import as_varied


def origins(found: Import) -> dict[str, str]:
    """By name, the places of an import's tasks that are named after their files."""
    return {row.name: _place(row) for row in found.rows if row.is_named_by_path}


def refuse_strangers(found: Import, *, moved: bool) -> None:
    """Refuse tasks that would become versions of another place's task with the same name.

    moved: they may be the same files in a new place.
    """
    for index, row in enumerate(found.rows):
        if row.task is None or moved or not row.is_named_by_path:
            continue
        if (whose := _taken_by(row, row.task)) is not None:
            advice = "rename this file or its folder, or pass --moved if it is the same file"
            reason = f"{row.name} is already the name of {whose}: {advice}"
            found.rows[index] = refused(row.path, DataError("name", reason))


def _place(row: Row) -> str:
    return str(row.path.resolve())


def _taken_by(row: Row, data: TaskData) -> str | None:
    """The owner of the name, if it isn't this file."""
    versions = list(TaskVersion.objects.filter(task__slug=data.name))
    known = [version.origin for version in versions if version.origin]
    has_its_text = any(version.data.files == data.files for version in versions)
    if not versions or has_its_text or _place(row) in known:
        return None
    return known[0] if known else "a task written on this site"


_NONE_SHIPPED = "this version of kbench doesn't include soundness reports"


class Command(BaseCommand):
    """`manage.py load_tasks [PATH] [--format FORMAT] [--soundness FILE_OR_FOLDER]`."""

    help = (
        "Publish the task or the folder of tasks at PATH (default: the built-in tasks), and report"
        " what was loaded, adapted or refused, and why."
        " Unchanged tasks are left alone; changed ones get a new version. A task is published only"
        " if a soundness report shows that it rejects wrong kernels and that no filter flags it"
        " (python -m gpu_runner filter --task PATH --json REPORT); all other tasks"
        " wait in review, where admins can try them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", nargs="?", type=Path, default=None)
        parser.add_argument("--format", choices=IMPORT_FORMATS, default="auto")
        parser.add_argument(
            "--soundness",
            type=Path,
            metavar="FILE_OR_FOLDER",
            help="use these soundness reports (JSON)",
        )
        parser.add_argument(
            "--moved",
            action="store_true",
            help="accept files that moved since they were loaded",
        )
        parser.add_argument(
            "--publish-unproven",
            default=None,
            metavar="REASON",
            help="publish without a passing report; the reason is stored and shown",
        )
        parser.add_argument(
            "--report",
            type=Path,
            metavar="FILE",
            help="write the outcome of each task to FILE as JSON",
        )
        parser.add_argument(
            "--brief", action="store_true", help="print only the summary, not a line for each task"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Publish every task that can be read and is sound; exit status 1 if one is refused.

        With verbosity 0 nothing but errors is printed.
        """
        if options["publish_unproven"] is not None and not options["publish_unproven"].strip():
            raise CommandError("--publish-unproven: is empty; give the reason to store and show")
        if options["report"] is not None and (reason := _not_writable(options["report"])):
            raise CommandError(f"--report: {reason}; nothing was loaded")
        path: Path = options["path"] or catalog_folder()
        reports, override = _reports(path, options)
        found = import_path(path, options["format"])
        refuse_strangers(found, moved=options["moved"])
        publications = admit_all(
            tasks=[as_varied(task) for task in found.tasks],
            reports=reports,
            override=override,
            now=timezone.now(),
            origins=origins(found),
        )
        label_new(labels=loader.labels_of(path), now=timezone.now())
        label_imported(versions=[p.version for p in publications], now=timezone.now())
        known = {publication.version.digest for publication in publications}
        unused = [report for report in reports if report.digest not in known]
        result = import_report.Result(
            found=found,
            publications={each.version.task.slug: each for each in publications},
            unused=unused if options["soundness"] is not None else (),
        )
        tells = options["verbosity"] > 0
        if tells:
            for line in import_report.lines(result, brief=options["brief"]):
                self.stdout.write(line)
        if options["report"] is not None:
            _write(options["report"], import_report.document(result, options["format"]))
        if found.errors:
            refused = _refused(found.errors, is_told=tells and not options["brief"])
            raise CommandError("\n".join(refused))
        if not found.rows:
            raise CommandError(f"no task in {path}")


def _refused(errors: Sequence[DataError], *, is_told: bool) -> list[str]:
    """What is said of entries that were refused: where their rows have the reasons, how many."""
    if errors and is_told:
        entries = len({error.field for error in errors})
        return [f"{entries} refused for the reason{'s' * (len(errors) > 1)} above"]
    return [str(error) for error in errors]


def _not_writable(path: Path) -> str:
    """Why a report cannot be written there; empty if nothing speaks against it."""
    if path.is_dir():
        return f"{path} is a folder; choose a file in it"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    if path.exists():
        return "" if os.access(path, os.W_OK) else f"{path} cannot be written to"
    can_be_made = os.access(path.parent, os.W_OK | os.X_OK)
    return "" if can_be_made else f"no file can be created in {path.parent}"


def _write(path: Path, document: dict[str, object]) -> None:
    try:
        path.write_text(json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise CommandError(f"--report: {path} cannot be written: {error.strerror}") from None


def _reports(path: Path, options: dict[str, Any]) -> tuple[list[loader.Report], str]:
    """Reports, and why tasks may go without; raises `CommandError` if one cannot be read.

    Of those that come with kbench, what a runner of this site has made itself is left out.
    """
    override: str = options["publish_unproven"] or ""
    if options["soundness"] is not None:
        return _read(options["soundness"]), override
    if not path.resolve().is_relative_to(catalog_folder().resolve()):
        return [], override
    if not any(loader.BUILT_IN_REPORTS.glob("*.json")):
        return [], override or _NONE_SHIPPED
    reports = _read(loader.BUILT_IN_REPORTS)
    made_here = Soundness.objects.filter(made_here=True).values_list("version__digest", "kind")
    known = set(made_here)
    return [each for each in reports if (each.digest, each.kind) not in known], override


def _read(path: Path) -> list[loader.Report]:
    reports, faults = loader.read_reports(path)
    if faults:
        raise CommandError("\n".join([*map(str, faults), "no tasks were loaded"]))
    return reports

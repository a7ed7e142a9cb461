"""Write a run, with all that its pages show, into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from gpu_runner.data.codec import DataError
from runs_app.features.transfer import files, run_faults
from runs_app.features.transfer.export import exported_run
from runs_app.features.transfer.management.commands.export_results import own_name
from runs_app.models import Run


class Command(BaseCommand):
    """`manage.py export_run RUN_ID FILE [--site NAME] [--note TEXT]`."""

    help = (
        "Write a finished public run to FILE: .json or .json.gz. It contains the prompts, "
        "answers, candidates and measurements, but nothing about hidden workloads. Another site "
        "shows the run with `manage.py import_run FILE`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=UUID, metavar="RUN_ID", help="the id in the run's address")
        parser.add_argument("path", type=Path, metavar="FILE")
        parser.add_argument(
            "--site", default="", help="name of this site, as other sites will show it"
        )
        parser.add_argument("--note", default="", help="a note about it for readers")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        site, now = options["site"].strip() or own_name(), timezone.now()
        rows = Run.objects.select_related("user", "agent", "device", "task_version__task", "best")
        if (run := rows.filter(pk=options["run"]).first()) is None:
            raise CommandError(f"there is no run {options['run']}")
        try:
            files.check_name(path, tables=False)
            file, left_out = exported_run(run, site=site, note=options["note"].strip(), now=now)
            run_faults.refuse_wrong(file, now)
            files.write(file, path)
        except (files.FileError, DataError) as error:
            raise CommandError(f"nothing was written: {error}") from None
        for line in left_out:
            self.stderr.write(f"left out: {line}")
        counts = f"{len(file.run.candidates)} candidate(s), {len(file.run.calls)} call(s)"
        self.stdout.write(f"{path}: {counts}, {len(file.results)} result(s) of boards")

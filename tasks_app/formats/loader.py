"""Tasks on disk, and soundness reports of them; reading never executes anything."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import catalog_folder, catalog_specifications
from gpu_runner.data.formats.text import decoded
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind
from tasks_app.formats.importing import import_path
from tasks_app.formats.soundness_report import LARGEST, REFERENCE, read_report

BUILT_IN_REPORTS = catalog_folder().with_name("catalog_soundness")
"""Soundness reports of the built-in tasks, one file a task."""

BUILT_IN_LABELS = catalog_folder().with_name("catalog_labels.toml")
"""Difficulty and tags of the built-in tasks."""

_WORDS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}  # as `gpu_runner.data.codec`


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `python -m gpu_runner filter --json` wrote about one version of a task.

    It passes if it says so, tells of mutants and of filters, and neither names a survivor nor has
    a filter that flags the task. `mutants` and `filters` are their numbers.
    """

    task: str
    digest: str
    passed: bool
    survivors: tuple[str, ...]
    mutants: int
    filters: int = 0
    flagged: tuple[str, ...] = ()
    device: str
    document: Mapping[str, object]

    @property
    def kind(self) -> DeviceKind:
        """Kind of the device that it was made on; devices are named `cpu`, or as their GPU is."""
        return DeviceKind.CPU if self.device in ("", DeviceKind.CPU) else DeviceKind.CUDA


def read_reports(path: Path) -> tuple[list[Report], list[DataError]]:
    """The soundness reports in a file or a folder, and what is wrong with others."""
    reports: list[Report] = []
    errors: list[DataError] = []
    if not path.exists():
        return [], [DataError("soundness", f"there is no {str(path)!r}")]
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        try:
            reports.append(report_of(_document(file)))
        except DataError as error:
            errors.append(DataError(f"{file}: {error.field}", error.reason))
    return reports, errors


def report_of(document: Mapping[str, Any]) -> Report:
    """A report as `gpu_runner.supervisor.soundness.soundness.survey` makes it, in JSON values.

    Raises `DataError` naming what is wrong with it.
    """
    kinds = {"task": str, "digest": str, "passed": bool, "survivors": list, "mutants": list}
    for field, kind in kinds.items():
        if field not in document:
            raise DataError(field, "is missing: create the report with `gpu_runner filter --json`")
        if not isinstance(document[field], kind):
            raise DataError(field, f"is not a {kind.__name__}")
    found = read_report(document)
    alive = (f"{m.direction}: {m.name}" for m in found.mutants if m.state == "survived")
    survivors = tuple(dict.fromkeys([*map(str, document["survivors"]), *alive]))
    failed = found.unlisted_failed or any(mutant.state == "failed" for mutant in found.mutants)
    return Report(
        task=document["task"],
        digest=document["digest"],
        passed=(
            document["passed"]
            and bool(failed and found.asked)
            and not (survivors or found.flagged or found.misses)
            and any(kernel.name == REFERENCE for kernel in found.honest)
        ),
        survivors=survivors,
        mutants=found.tried,
        filters=found.asked,
        flagged=found.flagged,
        device=str(document.get("device", "")),
        document=document,
    )


def labels_of(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Difficulty and tags of the catalogue's tasks, variants included, at or below `path`."""
    labels = tomllib.loads(BUILT_IN_LABELS.read_text())
    return {
        name: (labels[file.parent.name][0], labels[file.parent.name][1:])
        for name, file in catalog_specifications().items()
        if file.resolve().is_relative_to(path.resolve())
    }


def command_argument(name: str) -> str:
    """What `python -m gpu_runner` takes as --task: its name if built in, else a path to fill in."""
    return name if name in catalog_specifications() else f"PATH/TO/{name}"


def _document(file: Path) -> dict[str, object]:
    """A JSON object whose numbers are all finite: what has none stands there as its word."""
    try:
        if file.stat().st_size > LARGEST:
            raise DataError("size", f"is larger than {LARGEST} bytes")
        text = decoded(file.read_bytes(), "report")
        document = json.loads(text, parse_constant=_WORDS.__getitem__, parse_float=_number)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("report", f"is not readable as JSON: {error}") from None
    if not isinstance(document, dict):
        raise DataError("report", "is not a JSON object")
    return document


def _number(text: str) -> float | str:
    """A number, or its word where it is beyond all floats, such as 1e999."""
    value = float(text)
    return value if math.isfinite(value) else str(value)


def load_tasks(path: Path, task_format: str = "auto") -> tuple[list[Task], list[DataError]]:
    """The tasks at `path`, and what is wrong with those that could not be read."""
    found = import_path(path, task_format)
    return found.tasks, found.errors

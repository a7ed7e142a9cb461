"""Read whatever lies at a path as tasks or kernels, and say of each file what became of it.

Nothing is executed: the site never imports a task's code.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from gpu_runner.data.codec import DataError, DataErrors
from gpu_runner.data.formats import FORMATS, built_in_tasks, read_task, specifications
from gpu_runner.data.formats.flashinfer_trace import is_definition, is_solution
from gpu_runner.data.formats.kbench import is_specification
from gpu_runner.data.formats.mskernelbench import FORMAT, PRECISIONS, Offer, read_origin
from gpu_runner.data.formats.naming import name_by_folder, naming_folder
from gpu_runner.data.formats.robust_kbench import FORWARD_FILE, robust_files
from gpu_runner.data.formats.trace_definition import DEFINITION
from gpu_runner.data.task import Task, TaskFormat
from tasks_app.formats.soundness_report import is_report

IMPORT_FORMATS = (*FORMATS, FORMAT)
_DEEPEST = 8  # folders within folders
_SUFFIXES = {
    "auto": (".py", ".json", ".cu"),
    "kernelbench": (".py",),
    "json": (".json",),
    "flashinfer-trace": (".json",),
    FORMAT: (".cu",),
}
"""Files that are tasks or kernels in a format; in the others, folders are tasks."""
_NATIVE, _ROBUST = ("auto", "kbench"), ("auto", "robust-kbench")
"""Formats in which a folder is a task by its specification, or by its forward function."""
_TRACE = ("auto", "flashinfer-trace")
"""Formats in which a JSON file may be a definition, and those beside it are its solutions."""


class Outcome(StrEnum):
    """What became of a file or a folder."""

    LOADED = "loaded"  # as it is
    ADAPTED = "adapted"  # loaded, with changes that the notes name
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of one file or folder; `faults` are why it was refused.

    task: what it was read as; offer: or the kernel that it is of a task that we have.
    """

    path: Path
    outcome: Outcome
    notes: tuple[str, ...] = ()
    task: Task | None = None
    offer: Offer | None = None
    faults: tuple[DataError, ...] = ()

    @property
    def name(self) -> str:
        """Name of the task, or nothing where there is none."""
        if self.task is not None:
            return self.task.name
        return self.offer.task if self.offer is not None else ""

    @property
    def is_named_by_path(self) -> bool:
        """Whether it is a task whose files don't name it."""
        says = self.task is not None and self.task.format is TaskFormat.KBENCH
        return self.task is not None and not says and self.path.suffix != ".json"


@dataclass(frozen=True)
class Import:
    """Rows for everything at `path`, and the files that could be no task in that format.

    reports: those of them that are soundness reports.
    """

    path: Path
    rows: list[Row] = field(default_factory=list)
    ignored: list[Path] = field(default_factory=list)
    reports: list[Path] = field(default_factory=list)

    @property
    def tasks(self) -> list[Task]:
        """The tasks among the rows."""
        return [row.task for row in self.rows if row.task is not None]

    @property
    def offers(self) -> list[Offer]:
        """The kernels among the rows."""
        return [row.offer for row in self.rows if row.offer is not None]

    @property
    def errors(self) -> list[DataError]:
        """Why rows were refused; the field is the path."""
        return [DataError(str(row.path), str(fault)) for row in self.rows for fault in row.faults]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How many tasks and kernels are read, and for how long; beyond, `DataError` is raised."""

    most: int
    seconds: float


def import_path(path: Path, task_format: str = "auto", *, bounds: Bounds | None = None) -> Import:
    """Read a task, or a folder of tasks and folders, some levels deep.

    Entries that begin with a dot or an underscore, and files of other kinds, are `ignored`;
    soundness reports between tasks are among the `reports`. Files of one name are told apart by
    their folders; of two tasks that have one name all the same, the second is refused.
    """
    began = time.monotonic()
    found = Import(path)
    reader = _Reader(task_format)
    for entry in _entries(found, task_format):
        if bounds is not None:
            _keep_to(bounds, len(found.rows), time.monotonic() - began)
        found.rows.append(reader.read(entry))
    counts = Counter(row.name for row in found.rows if row.task is not None)
    names: dict[str, Path] = {}
    for index, row in enumerate(found.rows):
        if row.task is not None:
            named = _by_folder(row, row.task, path) if counts[row.name] > 1 else row
            first = names.setdefault(named.name, row.path)
            taken = DataError("name", f"{named.name} is already the name of {first}")
            found.rows[index] = named if first == row.path else refused(row.path, taken)
    return found


def _by_folder(row: Row, task: Task, root: Path) -> Row:
    """The entry with its folder's name in front, if it isn't at the root and its file names it."""
    if not row.is_named_by_path or naming_folder(row.path) == root:
        return row
    name = name_by_folder(task.name, row.path)
    note = f"is named {name}, because other folders also have a {row.path.name}"
    notes = (*row.notes, note)
    return replace(row, task=replace(task, name=name), outcome=Outcome.ADAPTED, notes=notes)


def _keep_to(bounds: Bounds, count: int, seconds: float) -> None:
    if count >= bounds.most:
        raise DataError("files", f"contain more than {bounds.most} tasks and kernels")
    if seconds > bounds.seconds:
        raise DataError("files", f"take more than {bounds.seconds:g} s to read: upload fewer")


class _Reader:
    """Reads entries of one format; knows the built-in tasks once a kernel asks for them."""

    def __init__(self, task_format: str) -> None:
        self._format = task_format
        self._built_in: list[Task] | None = None

    def read(self, path: Path) -> Row:
        try:
            if self._is_kernel(path):
                return self._offer(path)
            reading = read_task(path, self._format)
        except DataError as error:
            return refused(path, error)
        outcome = Outcome.ADAPTED if reading.adaptations else Outcome.LOADED
        notes = reading.adaptations + reading.remarks
        return Row(path=path, outcome=outcome, notes=notes, task=reading.task)

    def _is_kernel(self, path: Path) -> bool:
        return self._format == FORMAT or (self._format == "auto" and path.suffix == ".cu")

    def _offer(self, path: Path) -> Row:
        if self._built_in is None:
            self._built_in = built_in_tasks()
        offer = read_origin(path, self._built_in)
        return Row(path=path, outcome=Outcome.ADAPTED, notes=offer.adaptations, offer=offer)


def refused(path: Path, fault: DataError) -> Row:
    """The row of an entry that is refused for this reason."""
    found = fault.errors if isinstance(fault, DataErrors) else (fault,)
    notes = tuple(map(str, found))
    plain = tuple(DataError(e.field, e.reason, e.line, e.place) for e in found)
    # those that were raised hold on to all that was parsed
    return Row(path=path, outcome=Outcome.REFUSED, notes=notes, faults=plain)


def _entries(found: Import, task_format: str) -> Iterator[Path]:
    """What is to be read; the path itself unless it is a folder that holds something."""
    path = found.path
    inside = list(_inside(path, task_format, found, 0)) if path.is_dir() else []
    yield from inside or [path]


def _inside(
    folder: Path, task_format: str, found: Import, depth: int, *, documents: bool = True
) -> Iterator[Path]:
    """`documents`: JSON may be a task. Below a task of robust-kbench it holds what was measured."""
    entries = sorted(folder.iterdir(), key=_numbers_apart)
    if task_format in _NATIVE and any(map(is_specification, entries)):  # all below is the task's
        yield folder
        yield from specifications(folder)[1:]
        return
    taken = _robust_task(folder) if task_format in _ROBUST else set()
    if taken:
        yield folder
    for entry in entries:
        if taken and not entry.is_dir():
            found.ignored.extend([] if entry.name in taken else [entry])
        elif entry.suffix == ".json" and not documents:
            found.ignored.append(entry)
        else:
            inner = documents and not taken
            yield from _of_entry(entry, task_format, found, depth, documents=inner)


def _robust_task(folder: Path) -> set[str]:
    """Names of the files of robust-kbench's task in a folder; empty if it is none."""
    names = set(robust_files(folder))
    return names if FORWARD_FILE in names else set()


def _of_entry(
    entry: Path, task_format: str, found: Import, depth: int, *, documents: bool
) -> Iterator[Path]:
    if entry.name[0] in "._":
        found.ignored.append(entry)
    elif entry.is_dir() and not entry.is_symlink() and depth < _DEEPEST:
        yield from _inside(entry, task_format, found, depth + 1, documents=documents)
    elif entry.suffix == ".json" and is_report(entry):
        found.reports.append(entry)
    elif entry.is_dir() or _may_be_read(entry, task_format):
        yield entry
    else:
        found.ignored.append(entry)


def _numbers_apart(path: Path) -> list[tuple[int, str]]:
    """Key by which `2_b` comes before `10_a`."""
    parts = re.split(r"([0-9]+)", path.name)
    return [(int(part[:18]), part) if part.isdecimal() else (-1, part) for part in parts]


def _may_be_read(path: Path, task_format: str) -> bool:
    if path.suffix not in _SUFFIXES.get(task_format, ()):
        return False
    if task_format in _TRACE and (path.parent / DEFINITION).exists():  # all else is its parts
        return path.name == DEFINITION
    if path.suffix == ".json" and task_format in _TRACE:
        return not is_solution(path) if task_format == "auto" else is_definition(path)
    return path.suffix != ".cu" or task_format == FORMAT or path.parent.name in PRECISIONS

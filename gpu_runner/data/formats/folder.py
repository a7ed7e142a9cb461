"""A task as a folder of texts that may be wrong: read with all that is wrong in it, and written."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_runner.data.characters import bad_character
from gpu_runner.data.codec import ERRORS_LIMIT, DataError
from gpu_runner.data.formats.building import examine
from gpu_runner.data.formats.kbench import (
    NOT_IN_TOML,
    SPECIFICATION,
    is_variant,
    parse_specification,
)
from gpu_runner.data.formats.source import MODULE_LIMIT, parse_module
from gpu_runner.data.formats.sweeps import expand, origins
from gpu_runner.data.formats.task_errors import refuse_too_many
from gpu_runner.data.formats.text import check_files
from gpu_runner.data.formats.toml_lines import field_lines, line_of
from gpu_runner.data.task import Task, TaskFormat

FAULTS_LIMIT = ERRORS_LIMIT
"""Faults of a folder that are told at once."""
_FILES = "files"
_PYTHON_LIMIT = 4 * MODULE_LIMIT  # chosen: several modules of the largest size
_DEEPEST = 16  # tables and lists within others
_INTEGER_BITS = 64  # of a C long, and of the wire
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_AT_END = "(at end of document)"
_WORKLOAD = re.compile(r"^workloads\[(\d+)\]")
_SHOWN = 500  # characters of a field or a reason
_SPECIFY = "is missing: add it with name, title, abi and a [[workloads]] table for each workload"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with a folder of texts, and where.

    field: dotted path, as `DataError` has it, or the file where it is all that is said of it; file:
    the file that is to be changed, empty if there is none; line: 1-based, None where it cannot be
    said. As a text, `task.toml, line 7: dtype: 'real' is not one of ...`.
    """

    field: str
    reason: str
    file: str = ""
    line: int | None = None

    @property
    def place(self) -> str:
        """The file, and the line where it is known; empty where there is no file."""
        return f"{self.file}, line {self.line}" if self.file and self.line else self.file

    @property
    def words(self) -> str:
        """The field and the reason, but for what the place says: the file, and the line."""
        is_placed = bool(self.file and self.line)
        reason = self.reason.replace(f" (line {self.line})", "") if is_placed else self.reason
        return reason if self.field in ("", self.file) else f"{self.field}: {reason}"

    def __str__(self) -> str:
        return f"{self.place}: {self.words}" if self.place else self.words


def read_folder(files: Mapping[str, str]) -> tuple[Task | None, tuple[Fault, ...]]:
    """The task that texts by relative path specify, or what is wrong with them.

    There is a task if and only if there is no fault. `task.toml` is as on a disk, but may have a
    `format`, so that tasks of other formats can be held too; a folder has no variants. Whatever
    the texts are, nothing is raised; at most `FAULTS_LIMIT` faults are told.
    """
    task: Task | None = None
    faults = list(_text_faults(files))
    if not faults:
        faults = list(_python_faults(files))
        specification = _Specification(files, is_python=not faults)
        task, found = specification.read()
        faults += found
    unique = tuple(dict.fromkeys(faults))[:FAULTS_LIMIT]
    return (None if unique else task), unique


def _text_faults(files: Mapping[str, str]) -> Iterator[Fault]:
    """Texts and paths that no task can hold, whatever they mean."""
    for name, text in files.items():
        for reason in _text_reasons(name, text):
            yield _about_file(name, reason)
        for folder in _folders(name):
            if folder in files:
                yield _about_file(name, f"cannot be inside {folder!r}, which is a file")
    try:
        check_files((name, text) for name, text in files.items() if not bad_character([name, text]))
    except DataError as error:
        if error.field == _FILES:
            yield Fault(field=error.field, reason=error.reason)


def _text_reasons(name: str, text: str) -> Iterator[str]:
    if reason := bad_character([name, text]):
        yield reason
        return
    try:
        check_files([(name, text)])
    except DataError as error:
        if error.field != _FILES:
            yield error.reason
    if is_variant(name):
        yield "defines a variant of the task: upload it as a separate task"


def _about_file(name: str, reason: str) -> Fault:
    shown = _cut(name.encode(errors="replace").decode())
    if shown != name:
        return Fault(field=f"files.{shown}", reason=reason)
    return Fault(field=name, reason=reason, file=name)


def _folders(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, min(len(parts), _DEEPEST))]


def _python_faults(files: Mapping[str, str]) -> Iterator[Fault]:
    modules = {name: text for name, text in files.items() if name.endswith(".py")}
    if sum(map(len, modules.values())) > _PYTHON_LIMIT:
        yield Fault(field=_FILES, reason=f"contain more than {_PYTHON_LIMIT} characters of Python")
        return
    for name, text in modules.items():
        try:
            parse_module(text, name)
        except DataError as error:
            line = _line_in(error, text)
            yield Fault(field=name, reason=error.reason, file=name, line=line)


def _line_in(error: DataError, text: str) -> int | None:
    """The line that an error or a parser names, which may be the one after the last."""
    last = len(text.rstrip("\n").split("\n"))
    if error.reason.endswith(_AT_END):
        return last
    match = _AT_LINE.search(error.reason)
    line = int(match[1]) if match else error.line
    return None if line is None else max(1, min(line, last))


class _Specification:
    """The task.toml of a folder, from its text to a task that passes every check."""

    def __init__(self, files: Mapping[str, str], *, is_python: bool) -> None:
        self._files = files
        self._is_python = is_python  # whether every Python file is
        self._origins: list[str] = []
        self._names: list[str] = []  # of the workloads

    def read(self) -> tuple[Task | None, list[Fault]]:
        if SPECIFICATION not in self._files:
            return None, [Fault(field=SPECIFICATION, reason=_SPECIFY)]
        try:
            task, errors = self._read()
            return task, self._placed(errors)
        except DataError as error:
            return None, self._placed([error])
        except (RecursionError, MemoryError):
            return None, [Fault(field=_FILES, reason="are nested too deeply, or too large")]

    def _read(self) -> tuple[Task | None, list[DataError]]:
        """The task and what speaks against it; raises the `DataError` that hides all others."""
        document = parse_specification(self._files[SPECIFICATION], SPECIFICATION)
        errors = list(_content_errors(document))
        reserved = [name for name in NOT_IN_TOML if name in document and name != "format"]
        errors += [DataError(name, f"does not belong in {SPECIFICATION}") for name in reserved]
        if errors:
            return None, errors
        expanded = expand(document)
        workloads = expanded.get("workloads")
        if isinstance(workloads, list):
            refuse_too_many(workloads)
            self._origins = origins(document)
            self._names = [str(w.get("name", "")) if isinstance(w, dict) else "" for w in workloads]
        held = {name: text for name, text in self._files.items() if name != SPECIFICATION}
        expanded = {"format": TaskFormat.KBENCH.value, **expanded, "files": held}
        return examine(expanded, is_python=self._is_python)

    def _placed(self, errors: list[DataError]) -> list[Fault]:
        """The errors as faults. Those of workloads that a sweep stands for are the sweep's."""
        is_toml = all(error.field != SPECIFICATION for error in errors)
        lines = field_lines(self._files[SPECIFICATION]) if errors and is_toml else {}
        alike: dict[tuple[str, str], list[str]] = {}
        firsts: dict[tuple[str, str], DataError] = {}
        for error in errors:
            match = _WORKLOAD.match(error.field)
            key = (_WORKLOAD.sub(self._origin, error.field), error.reason)
            firsts.setdefault(key, error)
            alike.setdefault(key, []).extend([self._name(match)] if match else [])
        return [
            self._fault(error, key[0], _of_workloads(alike[key]), lines)
            for key, error in itertools.islice(firsts.items(), FAULTS_LIMIT)
        ]

    def _fault(self, error: DataError, field: str, whose: str, lines: Mapping[str, int]) -> Fault:
        file, line = SPECIFICATION, line_of(lines, field)
        if field.removeprefix("files.") in self._files:
            field = file = field.removeprefix("files.")
            line = _line_in(error, self._files[file])
        elif field == _FILES or field.endswith(".py"):  # a file that is missing
            file, line = "", None
        return Fault(field=_cut(field), reason=_cut(error.reason) + whose, file=file, line=line)

    def _origin(self, match: re.Match[str]) -> str:
        index = int(match[1])
        return self._origins[index] if index < len(self._origins) else match[0]

    def _name(self, match: re.Match[str]) -> str:
        index = int(match[1])
        return self._names[index] if index < len(self._names) else ""


def _of_workloads(names: list[str]) -> str:
    """Which workloads a fault is of, in brackets; nothing where they have no names."""
    known = list(dict.fromkeys(filter(None, names)))
    if not known:
        return ""
    more = f" and {len(known) - 1} more" if len(known) > 1 else ""
    return f" (workload {_cut(known[0])!r}{more})"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _content_errors(document: Mapping[str, object]) -> Iterator[DataError]:
    """Values that JSON or the site's database cannot hold, and what is too deep to look into."""
    stack: list[tuple[str, object, int]] = [("", document, 0)]
    while stack:
        field, value, depth = stack.pop()
        inside = value if isinstance(value, dict) else {}
        if reason := bad_character([*inside] if isinstance(value, dict | list) else value):
            yield DataError(field, reason)
        elif depth > _DEEPEST:
            yield DataError(field, f"is more than {_DEEPEST} levels deep")
        elif isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
            yield DataError(field, f"is a whole number with more than {_INTEGER_BITS} bits")
        elif isinstance(value, list):
            items = [(f"{field}[{i}]", item, depth + 1) for i, item in enumerate(value)]
            stack += reversed(items)
        else:
            prefix = f"{field}." if field else ""
            items = [(prefix + key, item, depth + 1) for key, item in inside.items()]
            stack += reversed(items)

"""Read and write files of results: JSON, compressed JSON, and Parquet."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from runs_app.features.transfer import parquet
from runs_app.features.transfer.record import ResultFile
from tasks_app.spreadsheet import missing_parquet

LARGEST_BYTES = 64 * 1024 * 1024
"""Of a file, and of what a compressed one becomes."""

Document = dict[str, object]


class FileError(ValueError):
    """A file cannot be read or written; the text says which and why."""


def read(path: Path) -> Document:
    """What the file says, not yet decoded; raises `FileError`, or `DataError` with the field."""
    reader = _of(path)[0]
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise FileError(f"{path} is larger than {LARGEST_BYTES >> 20} MiB")
        return reader(path)
    except (OSError, EOFError) as error:
        raise FileError(f"{path} cannot be read: {_why(error)}") from None


def write(file: ResultFile, path: Path) -> None:
    """Write the whole file, or leave what was there; raises `FileError`."""
    writer = _of(path)[1]
    if path.is_dir():
        raise FileError(f"{path} is a folder; name a file in it")
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".kbench-") as folder:
            made = Path(folder) / path.name
            writer(codec.encode(file), made)
            made.replace(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {_why(error)}") from None


def check_name(path: Path, *, tables: bool = True) -> None:
    """Refuse a name whose ending says no known form, and Parquet without its library.

    tables: whether what is to be written is a table, so that Parquet can hold it.
    """
    if not tables and path.name.lower().endswith(".parquet"):
        raise FileError(f"{path}: the name must end in .json or .json.gz")
    _of(path)


def _of(path: Path) -> tuple[Callable[[Path], Document], Callable[[Document, Path], None]]:
    """What reads and what writes a file of this name."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        if reason := missing_parquet():
            raise FileError(f"{path}: {reason}")
        return parquet.read, parquet.write
    if name.endswith(".json.gz"):
        return _read_compressed, _write_compressed
    if name.endswith(".json"):
        return _read_json, _write_json
    raise FileError(f"{path}: the name must end in .json, .json.gz or .parquet")


def _read_json(path: Path) -> Document:
    return _parse(path.read_bytes())


def _read_compressed(path: Path) -> Document:
    with gzip.open(path) as opened:
        text = opened.read(LARGEST_BYTES + 1)
    if len(text) > LARGEST_BYTES:
        raise FileError(f"{path} would be larger than {LARGEST_BYTES >> 20} MiB")
    return _parse(text)


def _parse(text: bytes) -> Document:
    try:
        document = json.loads(text.decode(), parse_constant=_no_number)
    except UnicodeDecodeError:
        raise DataError("", "is not UTF-8") from None
    except RecursionError:
        raise DataError("", "is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DataError("", f"is not JSON: line {error.lineno}: {error.msg}") from None
    except ValueError as error:  # a number of too many digits, or one that `_no_number` refuses
        raise DataError("", f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise DataError("", "must be an object")
    return document


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _text(document: Document) -> bytes:
    return json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"


def _write_json(document: Document, path: Path) -> None:
    path.write_bytes(_text(document))


def _write_compressed(document: Document, path: Path) -> None:
    path.write_bytes(gzip.compress(_text(document), mtime=0))  # the same results, the same bytes


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)

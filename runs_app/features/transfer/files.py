"""Read and write files of results: JSON, compressed JSON, and Parquet by pyarrow, if it is there.

In Parquet, a row is a result. Objects whose keys are free stand as JSON text; what is said of the
whole file stands in the schema's metadata.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
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
        raise FileError(f"{path} is a folder: specify a file in it")
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
        return _read_parquet, _write_parquet
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


_HEAD = b"kbench"
_TEXTS = ("environment", "files")


def _write_parquet(document: dict[str, Any], path: Path) -> None:
    """Write an encoded `ResultFile`."""
    import pyarrow
    import pyarrow.parquet

    head = {name: value for name, value in document.items() if name != "results"}
    schema = _schema().with_metadata({_HEAD: json.dumps(head).encode()})
    rows = [_row(record) for record in document["results"]]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), path)


def _read_parquet(path: Path) -> dict[str, object]:
    """An encoded `ResultFile`; raises `DataError` for a file of something else."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
        head = json.loads((table.schema.metadata or {}).get(_HEAD, b"null"))
        rows = table.to_pylist()
    except (pyarrow.ArrowException, ValueError) as error:
        first = str(error).splitlines()[0]
        raise DataError("", f"is not readable Parquet: {first[:200]}") from None
    if not isinstance(head, dict):
        raise DataError("", "is not a kbench results file, according to its metadata")
    results = [_record(row, f"results[{number}]") for number, row in enumerate(rows)]
    return {**head, "results": results}


def _schema() -> Any:
    import pyarrow as pa

    text, number, count = pa.string(), pa.float64(), pa.int64()
    measurement = pa.struct(
        [("time_ns", number), ("low_ns", number), ("high_ns", number), ("calls", count)]
    )
    error = pa.struct([("output", text), ("scaled", number), ("relative", number)])
    numbers = [(name, pa.float64()) for name in ("flops", "bytes", "weight", "floor_ns")]
    workload = pa.struct(
        [
            ("name", pa.string()),
            ("parameters", pa.string()),
            ("measurement", measurement),
            ("baselines", pa.map_(pa.string(), measurement)),
            ("errors", pa.list_(error)),
            *numbers,
            ("claimed_ns", pa.float64()),
        ]
    )
    texts = (
        "evaluation", "submission", "task", "task_digest", "direction", "device", "device_kind",
        "device_name", "language", "source", "entry", "files", "source_digest", "agent",
        "agent_kind", "submitter", "language_model", "mode", "verdict", "reason", "entered_at",
        "measured_at", "environment",
    )  # fmt: skip
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            ("task_version", pa.int64()),
            ("latency_ns", pa.float64()),
            ("speedup_best", pa.float64()),
            ("unlisted_speedups", pa.map_(pa.string(), pa.float64())),
            ("pending_baselines", pa.list_(pa.string())),
            ("workloads", pa.list_(workload)),
        ]
    )


def _row(record: dict[str, Any]) -> dict[str, Any]:
    workloads = [
        {
            **workload,
            "parameters": json.dumps(workload["parameters"]),
            "baselines": list(workload["baselines"].items()),
            "errors": [_with_floats(error) for error in workload["errors"]],
        }
        for workload in record["workloads"]
    ]
    return {
        **record,
        "environment": json.dumps(record["environment"]),
        "entry": record.get("entry", ""),
        "files": json.dumps(record.get("files", {})),
        "unlisted_speedups": list(record["unlisted_speedups"].items()),
        "workloads": workloads,
    }


def _with_floats(error: dict[str, Any]) -> dict[str, Any]:
    """An error whose numbers JSON may hold as words, such as "inf"."""
    return {**error, "scaled": float(error["scaled"]), "relative": float(error["relative"])}


def _record(row: dict[str, Any], field: str) -> dict[str, Any]:
    workloads = [
        {
            **_objects(workload, ("parameters",), f"{field}.workloads[{number}]"),
            "baselines": dict(workload.get("baselines") or ()),
        }
        for number, workload in enumerate(_list(row.get("workloads"), f"{field}.workloads"))
    ]
    return {
        **_objects({"entry": "", "files": "{}", **row}, _TEXTS, field),
        "unlisted_speedups": dict(row.get("unlisted_speedups") or ()),
        "workloads": workloads,
    }


def _list(value: Any, field: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise DataError(field, "must be a list of objects")
    return value


def _objects(row: dict[str, Any], names: tuple[str, ...], field: str) -> dict[str, Any]:
    """The row with these of its texts _read_parquet as JSON."""
    _read_parquet = dict(row)
    for name in names:
        try:
            _read_parquet[name] = json.loads(row.get(name) or "null")
        except (TypeError, ValueError):
            raise DataError(f"{field}.{name}", "is not JSON") from None
    return _read_parquet

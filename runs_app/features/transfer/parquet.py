"""Files of results as Parquet, by pyarrow, which a site may lack.

A row is a result. Objects whose keys are free stand as JSON text; what is said of the whole file
stands in the schema's metadata.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpu_runner.data.codec import DataError

_HEAD = b"kbench"
_TEXTS = ("environment", "files")


def write(document: dict[str, Any], path: Path) -> None:
    """Write an encoded `ResultFile`."""
    import pyarrow
    import pyarrow.parquet

    head = {name: value for name, value in document.items() if name != "results"}
    schema = _schema().with_metadata({_HEAD: json.dumps(head).encode()})
    rows = [_row(record) for record in document["results"]]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), path)


def read(path: Path) -> dict[str, object]:
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
    """The row with these of its texts read as JSON."""
    read = dict(row)
    for name in names:
        try:
            read[name] = json.loads(row.get(name) or "null")
        except (TypeError, ValueError):
            raise DataError(f"{field}.{name}", "is not JSON") from None
    return read

"""Records as Parquet, by pyarrow, which a site may lack."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping
from typing import Any, get_args


def missing() -> str:
    """What to install where Parquet cannot be read; empty where it can."""
    if importlib.util.find_spec("pyarrow") is not None:
        return ""
    return "Parquet needs pyarrow, which is not installed: pip install 'kbench[parquet]'"


def table_of(records: list[dict[str, Any]], fields: Mapping[str, Any]) -> bytes:
    """Flat records, such as a board's rows, as a Parquet file; `fields` has each field's type."""
    import pyarrow as pa
    import pyarrow.parquet

    kinds = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    plain = {name: next(iter(get_args(kind)), kind) for name, kind in fields.items()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in plain.items()])
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(records, schema=schema), buffer)
    return buffer.getvalue()

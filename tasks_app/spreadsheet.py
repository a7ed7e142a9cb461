"""Records to download: JSON, CSV in which a spreadsheet runs nothing that strangers wrote, Parquet.

Parquet is written by pyarrow, which a site may lack.
"""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from django.http import HttpResponse, JsonResponse

FORMS = ("csv", "json")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(rows: Sequence[dict[str, object]], fields: Sequence[str] = ()) -> str:
    """Records with a header; text that a spreadsheet would run as a formula is quoted.

    `fields` are the columns; those of the first record if left out.
    """
    out = io.StringIO()
    names = list(fields) or (list(rows[0]) if rows else [])
    if names:
        writer = csv.DictWriter(out, fieldnames=names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def download(form: str, rows: Sequence[dict[str, object]], name: str) -> HttpResponse:
    """The records called `name`, as `form`: json or csv."""
    if form == "json":
        return JsonResponse({name: rows}, json_dumps_params={"indent": 2})
    response = HttpResponse(as_csv(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="kbench-{name}.csv"'
    return response


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def missing_parquet() -> str:
    """What to install where Parquet cannot be read; empty where it can."""
    if importlib.util.find_spec("pyarrow") is not None:
        return ""
    return "Parquet needs pyarrow, which is not installed: pip install 'kbench[parquet]'"


def as_parquet(records: list[dict[str, Any]], fields: Mapping[str, Any]) -> bytes:
    """Flat records, such as a board's rows, as a Parquet file; `fields` has each field's type."""
    import pyarrow as pa
    import pyarrow.parquet

    kinds = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    plain = {name: next(iter(get_args(kind)), kind) for name, kind in fields.items()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in plain.items()])
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pylist(records, schema=schema), buffer)
    return buffer.getvalue()

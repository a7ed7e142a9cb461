"""Records as CSV that a spreadsheet can open without running what strangers wrote."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(rows: Sequence[dict[str, Any]], fields: Sequence[str] = ()) -> str:
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


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

"""Records to download: JSON, or CSV in which a spreadsheet runs nothing that strangers wrote."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

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

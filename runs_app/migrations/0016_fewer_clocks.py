"""Stored results lose the clocks that are not kept any more: of a burst's line, and on a CPU."""

from __future__ import annotations

from typing import Any

from django.db import migrations

GONE = {"whole_ns", "null_whole_ns", "late_ns", "scatter_ns", "slope_ns", "intercept_ns"}
STORED = (("Result", "document"), ("Candidate", "feedback"))


def without(value: Any) -> Any:
    """The same JSON value without what is gone, at whatever depth; `single_ns` is `cpu_ns` now."""
    if isinstance(value, dict):
        kept = {key: without(each) for key, each in value.items() if key not in GONE}
        if "bound_ns" in kept and "single_ns" in kept:
            kept["cpu_ns"] = kept.pop("single_ns")
        return kept
    return [without(each) for each in value] if isinstance(value, list) else value


def forwards(apps: Any, schema_editor: Any) -> None:
    """Forget what nothing reads any more."""
    for model_name, field in STORED:
        model = apps.get_model("runs_app", model_name)
        for row in model.objects.exclude(**{field: None}).only("pk", field).iterator(100):
            found = getattr(row, field)
            changed = without(found)
            if changed != found:
                model.objects.filter(pk=row.pk).update(**{field: changed})


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0015_time_ns")]
    operations = [migrations.RunPython(forwards, migrations.RunPython.noop)]

"""A measured time is called `time_ns`: on a CPU it is no median any more."""

from __future__ import annotations

from typing import Any

from django.db import migrations

STORED = (("Result", "document"), ("Candidate", "feedback"))
OLD, NEW = "median_ns", "time_ns"


def renamed(value: Any, old: str, new: str) -> Any:
    """The same JSON value with a key of another name, at whatever depth."""
    if isinstance(value, dict):
        return {new if key == old else key: renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [renamed(each, old, new) for each in value]
    return value


def _rename(apps: Any, old: str, new: str) -> None:
    for model_name, field in STORED:
        model = apps.get_model("runs_app", model_name)
        for row in model.objects.exclude(**{field: None}).only("pk", field).iterator(100):
            found = getattr(row, field)
            changed = renamed(found, old, new)
            if changed != found:
                model.objects.filter(pk=row.pk).update(**{field: changed})


def forwards(apps: Any, schema_editor: Any) -> None:
    """Rename what is stored."""
    _rename(apps, OLD, NEW)


def backwards(apps: Any, schema_editor: Any) -> None:
    """Name it as it was before."""
    _rename(apps, NEW, OLD)


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0014_reevaluations")]
    operations = [migrations.RunPython(forwards, backwards)]

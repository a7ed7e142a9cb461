"""The CPU is a device of every installation; others appear when their runners announce them."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone


def add_cpu(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("runs_app", "Device").objects.get_or_create(
        slug="cpu", defaults={"kind": "cpu", "name": "CPU", "created_at": timezone.now()}
    )


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0001_submissions")]

    operations = [migrations.RunPython(add_cpu, migrations.RunPython.noop)]

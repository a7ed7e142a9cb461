"""Results that lack baselines rank by time, below those that have all."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F


def rank_by_time(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """As `outcome.apply` does for new results."""
    rows = apps.get_model("runs_app", "Evaluation").objects.filter(awaits_baselines=True)
    rows.filter(merit__gt=0).update(merit=-F("latency_ns"))


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0001_initial")]
    operations = [migrations.RunPython(rank_by_time, migrations.RunPython.noop)]

"""What replaces an evaluation is found by an index."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0021_runner_jobs")]
    operations = [
        migrations.AddIndex(
            model_name="evaluation",
            index=models.Index(
                fields=["submission", "device", "mode", "created_at"], name="evaluation_latest"
            ),
        ),
    ]

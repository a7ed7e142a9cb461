import django.db.models.deletion
from django.db import migrations, models


def _kept(to: str) -> models.ForeignKey:
    """What an entry is about; the entry stays when that is gone."""
    return models.ForeignKey(
        blank=True,
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="audit_entries",
        to=f"tasks_app.{to}",
    )


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0008_cancelled_act")]

    operations = [
        migrations.RenameModel("Act", "AuditEntry"),
        migrations.AlterField("auditentry", "draft", _kept("draft")),
        migrations.AlterField("auditentry", "task", _kept("task")),
        migrations.AlterField("auditentry", "version", _kept("taskversion")),
    ]

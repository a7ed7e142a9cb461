"""Evaluations say themselves that a later one has replaced them."""

from django.db import migrations, models
from django.db.models import Exists, OuterRef, Q


def mark(apps, schema_editor):
    """As `runs_app.work.replaced` did when this was written."""
    evaluations = apps.get_model("runs_app", "Evaluation").objects.order_by()
    later = evaluations.filter(
        Q(created_at__gt=OuterRef("created_at"))
        | Q(created_at=OuterRef("created_at"), pk__gt=OuterRef("pk")),
        ~Q(verdict="SYSTEM_ERROR"),
        mode="ranked",
        status="FINISHED",
        submission=OuterRef("submission"),
        device=OuterRef("device"),
    )
    evaluations.filter(Exists(later), mode="ranked").update(replaced=True)


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0037_challenges'),
        ('tasks_app', '0013_language_model_entries'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='evaluation',
            name='evaluation_record',
        ),
        migrations.RemoveIndex(
            model_name='evaluation',
            name='evaluation_verified',
        ),
        migrations.AddField(
            model_name='evaluation',
            name='replaced',
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('mode', 'ranked'), ('replaced', False)), fields=['device', 'task_version', 'direction', 'verdict', 'latency_ns'], name='evaluation_record'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['status', 'device'], name='evaluation_under_way'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('audited', 'passed'), ('mode', 'ranked'), ('replaced', False), ('verdict', 'CORRECT')), fields=['device', 'task_version', 'direction', 'latency_ns'], name='evaluation_verified'),
        ),
    ]

from django.db import migrations, models


def read_filters(apps, schema_editor):
    """Count the filters of stored reports; a report without any proves nothing."""
    for row in apps.get_model('tasks_app', 'Soundness').objects.all():
        filters = row.document.get('filters') or []
        row.filters = len(filters)
        row.flagged = [f"{f['direction']}: {f['name']}" for f in filters if f['passed'] is False]
        row.passed = row.passed and bool(filters) and not row.flagged
        row.save(update_fields=['filters', 'flagged', 'passed'])


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0002_soundness'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='soundness',
            name='soundness_passed_without_survivors',
        ),
        migrations.AddField(
            model_name='soundness',
            name='filters',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='soundness',
            name='flagged',
            field=models.JSONField(default=list),
        ),
        migrations.RunPython(read_filters, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='soundness',
            constraint=models.CheckConstraint(condition=models.Q(('passed', False), models.Q(('filters__gt', 0), ('flagged', []), ('mutants__gt', 0), ('survivors', [])), _connector='OR'), name='soundness_passed_without_fault'),
        ),
    ]

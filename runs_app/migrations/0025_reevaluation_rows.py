"""A re-evaluation is a row of its own, with the number of the log's entry that stood for it."""

import django.db.models.deletion
from django.conf import settings
from django.core.management.color import no_style
from django.db import migrations, models

WORDS = {
    'best': 'the best of each agent',
    'correct': 'all correct ones',
    'all': 'everything ranked',
}


def make_rows(apps, schema_editor):
    """A row for each entry that started one. The numbers stay: evaluations and addresses have them."""
    row_model = apps.get_model('runs_app', 'Reevaluation')
    versions = apps.get_model('tasks_app', 'TaskVersion').objects
    entries = apps.get_model('tasks_app', 'AuditEntry').objects.filter(kind='reevaluated')
    started = entries.filter(version__isnull=False, details__has_key='evaluations')
    for entry in started.order_by('pk'):
        details, target = entry.details, entry.version
        source = versions.filter(task=target.task_id, number=details['from']).first()
        chosen = WORDS.get(details['what']) or f"the best {details['top']} of the board"
        row_model.objects.create(
            pk=entry.pk,
            source=source or target,  # a version that was deleted since has left no other trace
            target=target,
            devices=details['devices'],
            chosen=chosen,
            asked_by=entry.actor,
            created_at=entry.created_at,
        )
    for statement in schema_editor.connection.ops.sequence_reset_sql(no_style(), [row_model]):
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0024_rejected'),
        ('tasks_app', '0011_decisions_from_the_log'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Reevaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('devices', models.JSONField()),
                ('chosen', models.CharField(default='the best of each agent', max_length=100)),
                ('created_at', models.DateTimeField()),
                ('asked_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tasks_app.taskversion')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reevaluations', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.RunPython(make_rows, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='evaluation',
            name='reevaluation',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='runs_app.reevaluation'),
        ),
    ]

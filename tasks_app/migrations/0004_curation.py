import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


def date_public_versions(apps, schema_editor):
    """What is its task's current version, or was before it, is taken to have been public."""
    version_model = apps.get_model('tasks_app', 'TaskVersion')
    for task in apps.get_model('tasks_app', 'Task').objects.filter(state__in=('published', 'retired')):
        if task.current_version is not None:
            version_model.objects.filter(task=task, number__lte=task.current_version.number).update(
                published_at=models.F('created_at')
            )


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0003_filters'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='task',
            name='contaminated',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='task',
            name='difficulty',
            field=models.CharField(blank=True, choices=[('easy', 'Easy'), ('medium', 'Medium'), ('hard', 'Hard')], max_length=10),
        ),
        migrations.AddField(
            model_name='task',
            name='tags',
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name='taskversion',
            name='published_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=100)),
                ('files', models.JSONField()),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('review', 'In review'), ('published', 'Published'), ('closed', 'Closed')], default='draft', max_length=10)),
                ('revision', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='task_drafts', to=settings.AUTH_USER_MODEL)),
                ('taken_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('task', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='tasks_app.task')),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-changed_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='Act',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('uploaded', 'Uploaded'), ('edited', 'Edited'), ('taken', 'Taken over'), ('checked', 'Had checked'), ('tried', 'Tried its kernels'), ('sent', 'Sent to review'), ('returned', 'Sent back'), ('closed', 'Closed'), ('published', 'Published'), ('overridden', 'Published without a proof'), ('version', 'Made another version public'), ('retired', 'Retired'), ('restored', 'Restored'), ('contaminated', 'Marked contaminated'), ('cleared', 'Cleared of contamination'), ('labelled', 'Labelled'), ('reevaluated', 'Had submissions evaluated again'), ('loaded', 'Loaded')], max_length=15)),
                ('name', models.CharField(blank=True, db_index=True, max_length=100)),
                ('reason', models.TextField(blank=True)),
                ('details', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField()),
                ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('task', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='acts', to='tasks_app.task')),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='acts', to='tasks_app.taskversion')),
                ('draft', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='acts', to='tasks_app.draft')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.AddConstraint(
            model_name='draft',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ('draft', 'closed')), ('version__isnull', False), _connector='OR'), name='draft_review_has_version'),
        ),
        migrations.AddIndex(
            model_name='act',
            index=models.Index(fields=['-created_at'], name='act_newest'),
        ),
        migrations.RunPython(date_public_versions, migrations.RunPython.noop),
    ]

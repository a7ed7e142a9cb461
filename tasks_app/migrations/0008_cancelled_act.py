"""The tables of 2026-11-25, which databases of that day have; new ones begin with 0001."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=100, unique=True)),
                ('title', models.CharField(max_length=200)),
                ('scenario', models.CharField(db_index=True, default='other', max_length=50)),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('review', 'In review'), ('published', 'Published'), ('retired', 'Retired')], default='published', max_length=20)),
                ('difficulty', models.CharField(blank=True, choices=[('easy', 'Easy'), ('medium', 'Medium'), ('hard', 'Hard')], max_length=10)),
                ('tags', models.JSONField(blank=True, default=list)),
                ('contaminated', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('slug',),
            },
        ),
        migrations.CreateModel(
            name='TaskVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('document', models.JSONField()),
                ('abi', models.CharField(choices=[('torch', 'torch'), ('c', 'c')], max_length=10)),
                ('dtype', models.CharField(max_length=20)),
                ('created_at', models.DateTimeField()),
                ('published_at', models.DateTimeField(blank=True, null=True)),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='tasks_app.task')),
            ],
            options={
                'ordering': ('task', '-number'),
            },
        ),
        migrations.AddField(
            model_name='task',
            name='current_version',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tasks_app.taskversion'),
        ),
        migrations.CreateModel(
            name='Soundness',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('cuda', 'cuda'), ('cpu', 'cpu')], max_length=10)),
                ('passed', models.BooleanField()),
                ('mutants', models.PositiveIntegerField()),
                ('survivors', models.JSONField()),
                ('filters', models.PositiveIntegerField(default=0)),
                ('flagged', models.JSONField(default=list)),
                ('device', models.CharField(blank=True, max_length=100)),
                ('made_here', models.BooleanField(default=False)),
                ('document', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('passed', '-created_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='Override',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='overrides', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
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
                ('kind', models.CharField(choices=[('uploaded', 'Uploaded'), ('edited', 'Edited'), ('taken', 'Taken over'), ('checked', 'Had checked'), ('cancelled', 'Cancelled a check'), ('judged', 'Asked a language model'), ('tried', 'Tried its kernels'), ('sent', 'Sent to review'), ('returned', 'Sent back'), ('closed', 'Closed'), ('published', 'Published'), ('overridden', 'Published without a proof'), ('version', 'Made another version public'), ('retired', 'Retired'), ('restored', 'Restored'), ('contaminated', 'Marked contaminated'), ('cleared', 'Cleared of contamination'), ('labelled', 'Labelled'), ('reevaluated', 'Had submissions evaluated again'), ('loaded', 'Loaded')], max_length=15)),
                ('name', models.CharField(blank=True, db_index=True, max_length=100)),
                ('reason', models.TextField(blank=True)),
                ('details', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField()),
                ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('draft', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='acts', to='tasks_app.draft')),
                ('task', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='acts', to='tasks_app.task')),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='acts', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.AddConstraint(
            model_name='taskversion',
            constraint=models.UniqueConstraint(fields=('task', 'number'), name='task_version_number'),
        ),
        migrations.AddConstraint(
            model_name='soundness',
            constraint=models.UniqueConstraint(fields=('version', 'kind'), name='soundness_once_a_kind'),
        ),
        migrations.AddConstraint(
            model_name='soundness',
            constraint=models.CheckConstraint(condition=models.Q(('passed', False), models.Q(('filters__gt', 0), ('flagged', []), ('mutants__gt', 0), ('survivors', [])), _connector='OR'), name='soundness_passed_without_fault'),
        ),
        migrations.AddConstraint(
            model_name='override',
            constraint=models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='override_has_a_reason'),
        ),
        migrations.AddConstraint(
            model_name='draft',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ('draft', 'closed')), ('version__isnull', False), _connector='OR'), name='draft_review_has_version'),
        ),
        migrations.AddIndex(
            model_name='act',
            index=models.Index(fields=['-created_at'], name='act_newest'),
        ),
    ]

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

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
                ('published_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('why_retired', models.TextField(blank=True)),
                ('labelled', models.BooleanField(default=False)),
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
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='tasks_app.task')),
                ('number', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('document', models.JSONField()),
                ('abi', models.CharField(choices=[('torch', 'torch'), ('c', 'c')], max_length=10)),
                ('dtype', models.CharField(max_length=20)),
                ('origin', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('published_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ('task', '-number'),
                'constraints': [models.UniqueConstraint(fields=('task', 'number'), name='task_version_number')],
            },
        ),
        migrations.AddField(
            model_name='task',
            name='current_version',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tasks_app.taskversion'),
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=100)),
                ('task', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='tasks_app.task')),
                ('files', models.JSONField()),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('review', 'In review'), ('published', 'Published'), ('closed', 'Closed')], default='draft', max_length=10)),
                ('revision', models.PositiveIntegerField(default=1)),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='tasks_app.taskversion')),
                ('follows', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tasks_app.task')),
                ('base_version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='tasks_app.taskversion')),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='task_drafts', to=settings.AUTH_USER_MODEL)),
                ('taken_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('last_reason', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('versions', models.ManyToManyField(blank=True, related_name='made_in', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-changed_at', '-pk'),
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ('draft', 'closed')), ('version__isnull', False), _connector='OR'), name='draft_review_has_version')],
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('uploaded', 'Uploaded'), ('edited', 'Edited'), ('taken', 'Taken over'), ('checked', 'Had checked'), ('cancelled', 'Canceled a check'), ('judged', 'Asked a language model'), ('tried', 'Tried its kernels'), ('sent', 'Sent to review'), ('returned', 'Sent back'), ('closed', 'Closed'), ('published', 'Published'), ('overridden', 'Published without a proof'), ('version', 'Made another version public'), ('retired', 'Retired'), ('restored', 'Restored'), ('contaminated', 'Marked contaminated'), ('cleared', 'Cleared of contamination'), ('labelled', 'Labeled'), ('reevaluated', 'Had submissions evaluated again'), ('loaded', 'Loaded'), ('sign_up', 'Decided who may sign up'), ('invited', 'Invited'), ('account', 'Changed an account'), ('quota', 'Changed a quota'), ('switched', 'Stopped or reopened'), ('steered', 'Steered a runner'), ('runner_added', 'Added a runner'), ('runner_revoked', "Revoked a runner's token"), ('runner_cleared', 'Cleared doubts about a runner'), ('emptied', 'Emptied a queue'), ('announced', 'Announced'), ('model', 'Set up a language model'), ('decided', 'Ruled on a suspicious result'), ('challenge', 'Published a challenge')], max_length=15)),
                ('name', models.CharField(blank=True, db_index=True, max_length=100)),
                ('actor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('task', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_entries', to='tasks_app.task')),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_entries', to='tasks_app.taskversion')),
                ('draft', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit_entries', to='tasks_app.draft')),
                ('reason', models.TextField(blank=True)),
                ('details', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(fields=['-created_at'], name='act_newest')],
            },
        ),
        migrations.CreateModel(
            name='Soundness',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='tasks_app.taskversion')),
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
            ],
            options={
                'ordering': ('passed', '-created_at', '-pk'),
                'constraints': [models.UniqueConstraint(fields=('version', 'kind'), name='soundness_once_a_kind'), models.CheckConstraint(condition=models.Q(('passed', False), models.Q(('filters__gt', 0), ('flagged', []), ('mutants__gt', 0), ('survivors', [])), _connector='OR'), name='soundness_passed_without_fault')],
            },
        ),
        migrations.CreateModel(
            name='Override',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='overrides', to='tasks_app.taskversion')),
                ('reason', models.TextField()),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'constraints': [models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='override_has_a_reason')],
            },
        ),
    ]

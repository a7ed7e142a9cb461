"""The tables of 2026-11-25, which databases of that day have; new ones begin with 0001."""

import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models
from django.utils import timezone


def add_cpu(apps, schema_editor):
    """The CPU is a device of every installation; others appear when their runners announce them."""
    apps.get_model('runs_app', 'Device').objects.get_or_create(
        slug='cpu', defaults={'kind': 'cpu', 'name': 'CPU', 'created_at': timezone.now()}
    )


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0008_cancelled_act'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Device',
            fields=[
                ('slug', models.SlugField(max_length=60, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('cuda', 'cuda'), ('cpu', 'cpu')], max_length=10)),
                ('name', models.CharField(max_length=150)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('slug',),
            },
        ),
        migrations.CreateModel(
            name='Evaluation',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('direction', models.CharField(choices=[('forward', 'forward'), ('backward', 'backward')], max_length=10)),
                ('mode', models.CharField(choices=[('compile', 'compile'), ('test', 'test'), ('quick', 'quick'), ('ranked', 'ranked'), ('profile', 'profile'), ('audit', 'audit')], max_length=10)),
                ('status', models.CharField(choices=[('QUEUED', 'Queued'), ('RUNNING', 'Running'), ('FINISHED', 'Finished'), ('CANCELLED', 'Cancelled')], default='QUEUED', max_length=10)),
                ('verdict', models.CharField(blank=True, choices=[('CORRECT', 'CORRECT'), ('COMPILED', 'COMPILED'), ('WRONG_SHAPE', 'WRONG_SHAPE'), ('WRONG_DTYPE', 'WRONG_DTYPE'), ('WRONG_RESULT', 'WRONG_RESULT'), ('COMPILE_ERROR', 'COMPILE_ERROR'), ('RUNTIME_ERROR', 'RUNTIME_ERROR'), ('TIME_LIMIT', 'TIME_LIMIT'), ('MEMORY_LIMIT', 'MEMORY_LIMIT'), ('VIOLATION', 'VIOLATION'), ('UNSTABLE', 'UNSTABLE'), ('SYSTEM_ERROR', 'SYSTEM_ERROR')], default='', max_length=20)),
                ('reason', models.TextField(blank=True)),
                ('stage', models.CharField(blank=True, max_length=20)),
                ('attempt', models.PositiveIntegerField(default=1)),
                ('background', models.BooleanField(default=False)),
                ('runner_boot_id', models.CharField(blank=True, max_length=100)),
                ('latency_ns', models.FloatField(blank=True, null=True)),
                ('speedup_best', models.FloatField(blank=True, null=True)),
                ('speedup_eager', models.FloatField(blank=True, null=True)),
                ('speedup_compiled', models.FloatField(blank=True, null=True)),
                ('latency_spread', models.FloatField(blank=True, null=True)),
                ('speedup_spread', models.FloatField(blank=True, null=True)),
                ('hidden_speedup', models.FloatField(blank=True, null=True)),
                ('floor_fraction', models.FloatField(blank=True, null=True)),
                ('score', models.FloatField(blank=True, null=True)),
                ('quarantine', models.CharField(choices=[('none', 'No suspicion'), ('open', 'In quarantine'), ('cleared', 'Cleared'), ('upheld', 'Upheld')], default='none', max_length=10)),
                ('audited', models.CharField(choices=[('none', 'Not audited'), ('waiting', 'Audit under way'), ('passed', 'Verified'), ('failed', 'Audit failed'), ('suspicious', 'Audit in quarantine'), ('inconclusive', 'Audit without a result')], default='none', max_length=15)),
                ('created_at', models.DateTimeField()),
                ('queued_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('last_event_at', models.DateTimeField(blank=True, null=True)),
                ('events_stored', models.PositiveIntegerField(default=0)),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='runs_app.device')),
                ('task_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at',),
            },
        ),
        migrations.CreateModel(
            name='LanguageModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=150, unique=True)),
                ('created_at', models.DateTimeField()),
                ('base_url', models.CharField(blank=True, help_text='OpenAI-compatible, such as https://api.openai.com/v1', max_length=500)),
                ('api_name', models.CharField(blank=True, help_text='Its name at the endpoint; empty: the name above.', max_length=150)),
                ('key_variable', models.CharField(blank=True, help_text='Environment variable of the web host that holds the key; never the key itself.', max_length=100)),
                ('price_in_usd', models.FloatField(default=0.0, help_text='USD for a million tokens of input.')),
                ('price_out_usd', models.FloatField(default=0.0, help_text='USD for a million tokens of output.')),
                ('max_output_tokens', models.PositiveIntegerField(default=8192)),
                ('token_parameter', models.CharField(choices=[('max_tokens', 'max_tokens'), ('max_completion_tokens', 'max_completion_tokens')], default='max_tokens', max_length=30)),
                ('supports_temperature', models.BooleanField(default=True)),
                ('timeout_s', models.PositiveIntegerField(default=120, help_text='Longest silence in an answer.')),
                ('extra', models.JSONField(blank=True, default=dict, help_text='Further fields of the request.')),
            ],
            options={
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=150, unique=True)),
                ('kind', models.CharField(choices=[('person', 'Person'), ('agent', 'Agent'), ('shipped', 'Shipped with the tasks')], default='agent', max_length=10)),
                ('description', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('user', models.OneToOneField(blank=True, help_text='The person, if the kind is person.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='agent', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='Result',
            fields=[
                ('evaluation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='result', serialize=False, to='runs_app.evaluation')),
                ('document', models.JSONField()),
            ],
        ),
        migrations.CreateModel(
            name='EvaluationEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('attempt', models.PositiveIntegerField()),
                ('seq', models.PositiveIntegerField(blank=True, null=True)),
                ('kind', models.CharField(max_length=20)),
                ('payload', models.JSONField(default=dict)),
                ('ignored', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('evaluation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs_app.evaluation')),
            ],
            options={
                'ordering': ('evaluation', 'position'),
            },
        ),
        migrations.CreateModel(
            name='LanguageModelCall',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField(blank=True, null=True)),
                ('role', models.CharField(max_length=20)),
                ('verifier', models.CharField(blank=True, max_length=20)),
                ('about', models.PositiveIntegerField(blank=True, null=True)),
                ('parents', models.JSONField(default=list)),
                ('edit', models.CharField(blank=True, max_length=20)),
                ('generation', models.PositiveIntegerField(default=0)),
                ('slot', models.PositiveIntegerField(default=0)),
                ('island', models.PositiveIntegerField(default=0)),
                ('prompt', models.CharField(blank=True, max_length=100)),
                ('prompt_version', models.PositiveIntegerField(default=1)),
                ('messages', models.JSONField()),
                ('temperature', models.FloatField()),
                ('max_tokens', models.PositiveIntegerField()),
                ('seed', models.BigIntegerField(blank=True, null=True)),
                ('worst_usd', models.FloatField(default=0.0)),
                ('worst_tokens', models.PositiveIntegerField(default=0)),
                ('status', models.CharField(choices=[('WAITING', 'Waiting'), ('SENT', 'Sent'), ('ANSWERED', 'Answered'), ('FAILED', 'Failed'), ('INTERRUPTED', 'Interrupted')], default='WAITING', max_length=12)),
                ('response', models.TextField(blank=True)),
                ('partial', models.BooleanField(default=False)),
                ('finish_reason', models.CharField(blank=True, max_length=30)),
                ('served_by', models.CharField(blank=True, max_length=150)),
                ('error', models.TextField(blank=True)),
                ('error_kind', models.CharField(blank=True, max_length=20)),
                ('problem', models.TextField(blank=True)),
                ('tokens_in', models.PositiveIntegerField(default=0)),
                ('tokens_out', models.PositiveIntegerField(default=0)),
                ('cost_usd', models.FloatField(default=0.0)),
                ('estimated', models.BooleanField(default=False)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('told', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('heard_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('language_model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='runs_app.languagemodel')),
            ],
            options={
                'ordering': ('created_at',),
            },
        ),
        migrations.CreateModel(
            name='Candidate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('source', models.TextField()),
                ('digest', models.CharField(max_length=64)),
                ('edit', models.CharField(max_length=20)),
                ('generation', models.PositiveIntegerField(default=0)),
                ('slot', models.PositiveIntegerField(default=0)),
                ('island', models.PositiveIntegerField(default=0)),
                ('parents', models.JSONField(default=list)),
                ('model', models.CharField(blank=True, max_length=150)),
                ('title', models.CharField(blank=True, max_length=300)),
                ('knobs', models.JSONField(default=dict)),
                ('techniques', models.JSONField(default=list)),
                ('state', models.CharField(choices=[('drafted', 'Drafted'), ('dropped', 'Dropped'), ('measuring', 'Measuring'), ('measured', 'Measured')], default='drafted', max_length=10)),
                ('reason', models.TextField(blank=True)),
                ('votes', models.JSONField(default=dict)),
                ('measuring', models.JSONField(default=list)),
                ('measured', models.JSONField(default=list)),
                ('verdict', models.CharField(blank=True, max_length=20)),
                ('latency_ns', models.FloatField(blank=True, null=True)),
                ('spread', models.FloatField(blank=True, null=True)),
                ('speedup', models.FloatField(blank=True, null=True)),
                ('floor_fraction', models.FloatField(blank=True, null=True)),
                ('bottleneck', models.CharField(blank=True, max_length=30)),
                ('was_best', models.BooleanField(default=False)),
                ('feedback', models.JSONField(blank=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('measured_at', models.DateTimeField(blank=True, null=True)),
                ('call', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='candidates', to='runs_app.languagemodelcall')),
            ],
            options={
                'ordering': ('run', 'number'),
            },
        ),
        migrations.CreateModel(
            name='QuarantineCase',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('fingerprint', models.CharField(max_length=64)),
                ('suspicions', models.JSONField()),
                ('state', models.CharField(choices=[('open', 'In quarantine'), ('cleared', 'Cleared'), ('upheld', 'Upheld')], default='open', max_length=10)),
                ('created_at', models.DateTimeField()),
                ('task_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('created_at', 'pk'),
            },
        ),
        migrations.AddField(
            model_name='evaluation',
            name='quarantine_case',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='runs_app.quarantinecase'),
        ),
        migrations.CreateModel(
            name='QuarantineDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('cleared', 'Cleared'), ('upheld', 'Upheld')], max_length=10)),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='runs_app.quarantinecase')),
                ('decided_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, max_length=150)),
                ('direction', models.CharField(choices=[('forward', 'forward'), ('backward', 'backward')], max_length=10)),
                ('strategy', models.CharField(max_length=30)),
                ('seed', models.BigIntegerField()),
                ('config', models.JSONField()),
                ('problem', models.JSONField()),
                ('private', models.BooleanField(default=False)),
                ('enters_best', models.BooleanField(default=False)),
                ('status', models.CharField(choices=[('RUNNING', 'Running'), ('PAUSED', 'Paused'), ('FINISHED', 'Finished'), ('STOPPED', 'Stopped')], default='RUNNING', max_length=10)),
                ('reason', models.TextField(blank=True)),
                ('by_budget', models.BooleanField(default=False)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('steps_begun', models.PositiveIntegerField(default=0)),
                ('usd', models.FloatField(default=0.0)),
                ('tokens', models.BigIntegerField(default=0)),
                ('evaluations', models.PositiveIntegerField(default=0)),
                ('active_s', models.FloatField(default=0.0)),
                ('candidates_made', models.PositiveIntegerField(default=0)),
                ('seed_latency_ns', models.FloatField(blank=True, null=True)),
                ('best_latency_ns', models.FloatField(blank=True, null=True)),
                ('events_stored', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('resumed_at', models.DateTimeField(blank=True, null=True)),
                ('advanced_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs_app.agent')),
                ('best', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs_app.candidate')),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs_app.device')),
                ('task_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='tasks_app.taskversion')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at',),
            },
        ),
        migrations.AddField(
            model_name='languagemodelcall',
            name='run',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='calls', to='runs_app.run'),
        ),
        migrations.AddField(
            model_name='candidate',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='candidates', to='runs_app.run'),
        ),
        migrations.CreateModel(
            name='RunEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seq', models.PositiveIntegerField()),
                ('kind', models.CharField(max_length=20)),
                ('payload', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField()),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs_app.run')),
            ],
            options={
                'ordering': ('run', 'seq'),
            },
        ),
        migrations.CreateModel(
            name='Runner',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=150, unique=True)),
                ('boot_id', models.CharField(max_length=100)),
                ('state', models.CharField(choices=[('ready', 'Ready'), ('draining', 'Draining'), ('stopped', 'Stopped'), ('unfit', 'Unfit')], max_length=10)),
                ('reason', models.TextField(blank=True)),
                ('jail', models.BooleanField()),
                ('current', models.JSONField(default=list)),
                ('builds', models.PositiveIntegerField(default=1)),
                ('version', models.CharField(blank=True, max_length=50)),
                ('compiler', models.CharField(blank=True, max_length=100)),
                ('architecture', models.CharField(blank=True, max_length=50)),
                ('booted_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField(db_index=True)),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runners', to='runs_app.device')),
            ],
            options={
                'ordering': ('name',),
            },
        ),
        migrations.AddField(
            model_name='evaluation',
            name='runner',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='evaluations', to='runs_app.runner'),
        ),
        migrations.CreateModel(
            name='BaselineMeasurement',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('QUEUED', 'Queued'), ('RUNNING', 'Running'), ('FINISHED', 'Finished'), ('CANCELLED', 'Cancelled')], default='QUEUED', max_length=10)),
                ('attempt', models.PositiveIntegerField(default=1)),
                ('last_seq', models.PositiveIntegerField(default=0)),
                ('stage', models.TextField(blank=True)),
                ('reason', models.TextField(blank=True)),
                ('runner_boot_id', models.CharField(blank=True, max_length=100)),
                ('created_at', models.DateTimeField()),
                ('queued_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('last_event_at', models.DateTimeField(blank=True, null=True)),
                ('direction', models.CharField(choices=[('forward', 'forward'), ('backward', 'backward')], max_length=10)),
                ('report', models.JSONField(blank=True, null=True)),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='tasks_app.taskversion')),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='runs_app.device')),
                ('runner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to='runs_app.runner')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('source', models.TextField()),
                ('language', models.CharField(choices=[('cuda', 'cuda'), ('cpp', 'cpp')], max_length=10)),
                ('direction', models.CharField(choices=[('forward', 'forward'), ('backward', 'backward')], max_length=10)),
                ('digest', models.CharField(db_index=True, max_length=64)),
                ('private', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='runs_app.agent')),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='submissions', to=settings.AUTH_USER_MODEL)),
                ('carried_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='carried_to', to='runs_app.submission')),
                ('language_model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='runs_app.languagemodel')),
                ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='runs_app.run')),
                ('task_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at',),
            },
        ),
        migrations.AddField(
            model_name='evaluation',
            name='submission',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='runs_app.submission'),
        ),
        migrations.AddField(
            model_name='candidate',
            name='entry',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='entered_from', to='runs_app.submission'),
        ),
        migrations.AddField(
            model_name='candidate',
            name='trial',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='candidate', to='runs_app.submission'),
        ),
        migrations.CreateModel(
            name='BoardAudit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'Audit under way'), ('passed', 'Verified'), ('failed', 'Audit failed'), ('suspicious', 'Audit in quarantine'), ('inconclusive', 'Audit without a result')], default='waiting', max_length=15)),
                ('reason', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs_app.device')),
                ('evaluation', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs_app.evaluation')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='audits', to='runs_app.submission')),
            ],
            options={
                'ordering': ('-changed_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='TaskCheck',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('QUEUED', 'Queued'), ('RUNNING', 'Running'), ('FINISHED', 'Finished'), ('CANCELLED', 'Cancelled')], default='QUEUED', max_length=10)),
                ('attempt', models.PositiveIntegerField(default=1)),
                ('last_seq', models.PositiveIntegerField(default=0)),
                ('stage', models.TextField(blank=True)),
                ('reason', models.TextField(blank=True)),
                ('runner_boot_id', models.CharField(blank=True, max_length=100)),
                ('created_at', models.DateTimeField()),
                ('queued_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('last_event_at', models.DateTimeField(blank=True, null=True)),
                ('passed', models.BooleanField(blank=True, null=True)),
                ('asked_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='task_checks', to=settings.AUTH_USER_MODEL)),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='runs_app.device')),
                ('runner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to='runs_app.runner')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='TaskJudgement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdicts', models.JSONField(default=list)),
                ('problem', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('call', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='judgement', to='runs_app.languagemodelcall')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judgements', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='Tuning',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('verifier', models.CharField(max_length=20)),
                ('seed', models.BigIntegerField()),
                ('examples', models.JSONField()),
                ('generations', models.JSONField(default=list)),
                ('reason', models.TextField(blank=True)),
                ('usd', models.FloatField(default=0.0)),
                ('tokens', models.BigIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('language_model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tunings', to='runs_app.languagemodel')),
            ],
            options={
                'ordering': ('-created_at',),
            },
        ),
        migrations.AddField(
            model_name='languagemodelcall',
            name='tuning',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='calls', to='runs_app.tuning'),
        ),
        migrations.CreateModel(
            name='VerifierPrompt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verifier', models.CharField(max_length=20)),
                ('version', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('in_use', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('tuning', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='prompts', to='runs_app.tuning')),
            ],
            options={
                'ordering': ('verifier', '-version'),
            },
        ),
        migrations.AddConstraint(
            model_name='agent',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('kind', 'person'), ('user__isnull', False)), models.Q(models.Q(('kind', 'person'), _negated=True), ('user__isnull', True)), _connector='OR'), name='agent_user_iff_person'),
        ),
        migrations.AddConstraint(
            model_name='evaluationevent',
            constraint=models.UniqueConstraint(fields=('evaluation', 'position'), name='event_position'),
        ),
        migrations.AddConstraint(
            model_name='evaluationevent',
            constraint=models.UniqueConstraint(fields=('evaluation', 'attempt', 'seq'), name='event_once'),
        ),
        migrations.AddIndex(
            model_name='quarantinecase',
            index=models.Index(fields=['state', 'created_at'], name='quarantine_open'),
        ),
        migrations.AddConstraint(
            model_name='quarantinecase',
            constraint=models.UniqueConstraint(fields=('digest', 'task_version', 'fingerprint'), name='quarantine_case_once'),
        ),
        migrations.AddConstraint(
            model_name='quarantinecase',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ('open', 'cleared', 'upheld'))), name='quarantine_case_state'),
        ),
        migrations.AddConstraint(
            model_name='quarantinedecision',
            constraint=models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='quarantine_decision_reason'),
        ),
        migrations.AddConstraint(
            model_name='quarantinedecision',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ('cleared', 'upheld'))), name='quarantine_decision_state'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['status', 'advanced_at'], name='run_status'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('status__in', ('FINISHED', 'STOPPED'))), models.Q(('ended_at__isnull', True), ('status__in', ('RUNNING', 'PAUSED'))), _connector='OR'), name='run_ended_at_iff_over'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('resumed_at__isnull', False), ('status', 'RUNNING')), models.Q(models.Q(('status', 'RUNNING'), _negated=True), ('resumed_at__isnull', True)), _connector='OR'), name='run_resumed_at_iff_running'),
        ),
        migrations.AddConstraint(
            model_name='runevent',
            constraint=models.UniqueConstraint(fields=('run', 'seq'), name='run_event_seq'),
        ),
        migrations.AddIndex(
            model_name='baselinemeasurement',
            index=models.Index(fields=['status', 'queued_at'], name='baselines_queue'),
        ),
        migrations.AddConstraint(
            model_name='baselinemeasurement',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ('QUEUED', 'RUNNING'))), fields=('version', 'device', 'direction'), name='baselines_once_at_a_time'),
        ),
        migrations.AddConstraint(
            model_name='baselinemeasurement',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('report__isnull', False), ('status', 'FINISHED')), models.Q(('report__isnull', True), models.Q(models.Q(('status', 'FINISHED'), _negated=True), models.Q(('reason', ''), _negated=True), _connector='OR')), _connector='OR'), name='baselines_finished_with_report_or_reason'),
        ),
        migrations.AddConstraint(
            model_name='baselinemeasurement',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('status__in', ('FINISHED', 'CANCELLED'))), models.Q(('finished_at__isnull', True), ('status__in', ('QUEUED', 'RUNNING'))), _connector='OR'), name='baselines_finished_at_iff_over'),
        ),
        migrations.AddIndex(
            model_name='submission',
            index=models.Index(fields=['author', '-created_at'], name='submission_author'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(fields=['task_version', 'device', 'direction', 'verdict', '-speedup_best'], name='evaluation_board'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(fields=['device', 'status', 'queued_at'], name='evaluation_queue'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(fields=['status', 'finished_at'], name='evaluation_recent'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('mode', 'ranked'), ('verdict', 'CORRECT')), fields=['task_version', 'device', 'direction', 'latency_ns'], name='evaluation_record'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('audited', 'passed'), ('mode', 'ranked'), ('verdict', 'CORRECT')), fields=['device', 'task_version', 'direction', 'latency_ns'], name='evaluation_verified'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'FINISHED'), models.Q(('verdict', ''), _negated=True)), models.Q(models.Q(('status', 'FINISHED'), _negated=True), ('verdict', '')), _connector='OR'), name='evaluation_verdict_iff_finished'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('latency_ns__gt', 0), ('latency_ns__isnull', False), ('verdict', 'CORRECT')), models.Q(models.Q(('verdict', 'CORRECT'), _negated=True), ('latency_ns__isnull', True)), _connector='OR'), name='evaluation_latency_iff_correct'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('status__in', ('FINISHED', 'CANCELLED'))), models.Q(('finished_at__isnull', True), ('status__in', ('QUEUED', 'RUNNING'))), _connector='OR'), name='evaluation_finished_at_iff_over'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('quarantine', 'none'), ('quarantine_case__isnull', True)), models.Q(('quarantine__in', ('open', 'cleared', 'upheld')), ('quarantine_case__isnull', False), ('verdict', 'CORRECT')), _connector='OR'), name='evaluation_quarantine_iff_case'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.CheckConstraint(condition=models.Q(('audited', 'none'), models.Q(('audited__in', ['none', 'waiting', 'passed', 'failed', 'suspicious', 'inconclusive']), ('mode', 'ranked')), _connector='OR'), name='evaluation_audited_only_ranked'),
        ),
        migrations.AddConstraint(
            model_name='candidate',
            constraint=models.UniqueConstraint(fields=('run', 'number'), name='candidate_number'),
        ),
        migrations.AddConstraint(
            model_name='boardaudit',
            constraint=models.UniqueConstraint(fields=('submission', 'device'), name='board_audit_once'),
        ),
        migrations.AddConstraint(
            model_name='boardaudit',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'passed', 'failed', 'suspicious', 'inconclusive'])), name='board_audit_state'),
        ),
        migrations.AddIndex(
            model_name='taskcheck',
            index=models.Index(fields=['status', 'queued_at'], name='check_queue'),
        ),
        migrations.AddConstraint(
            model_name='taskcheck',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ('QUEUED', 'RUNNING'))), fields=('version', 'device'), name='check_once_at_a_time'),
        ),
        migrations.AddConstraint(
            model_name='taskcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('passed__isnull', False), ('status', 'FINISHED')), models.Q(('passed__isnull', True), ('status', 'FINISHED'), models.Q(('reason', ''), _negated=True)), models.Q(models.Q(('status', 'FINISHED'), _negated=True), ('passed__isnull', True)), _connector='OR'), name='check_finished_with_report_or_reason'),
        ),
        migrations.AddConstraint(
            model_name='taskcheck',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('status__in', ('FINISHED', 'CANCELLED'))), models.Q(('finished_at__isnull', True), ('status__in', ('QUEUED', 'RUNNING'))), _connector='OR'), name='check_finished_at_iff_over'),
        ),
        migrations.AddConstraint(
            model_name='taskjudgement',
            constraint=models.CheckConstraint(condition=models.Q(('problem', ''), ('verdicts', []), _connector='OR'), name='judgement_problem_has_no_verdict'),
        ),
        migrations.AddIndex(
            model_name='languagemodelcall',
            index=models.Index(fields=['status', 'heard_at'], name='call_status'),
        ),
        migrations.AddIndex(
            model_name='languagemodelcall',
            index=models.Index(condition=models.Q(('told', False)), fields=['ended_at'], name='call_untold'),
        ),
        migrations.AddConstraint(
            model_name='languagemodelcall',
            constraint=models.UniqueConstraint(fields=('run', 'number'), name='call_number'),
        ),
        migrations.AddConstraint(
            model_name='languagemodelcall',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('status__in', ('ANSWERED', 'FAILED', 'INTERRUPTED'))), models.Q(('ended_at__isnull', True), ('status__in', ('WAITING', 'SENT'))), _connector='OR'), name='call_ended_at_iff_over'),
        ),
        migrations.AddConstraint(
            model_name='verifierprompt',
            constraint=models.UniqueConstraint(fields=('verifier', 'version'), name='verifier_version'),
        ),
        migrations.AddConstraint(
            model_name='verifierprompt',
            constraint=models.UniqueConstraint(condition=models.Q(('in_use', True)), fields=('verifier',), name='verifier_one_in_use'),
        ),
        migrations.RunPython(add_cpu, migrations.RunPython.noop),
        # Known from 0021 on: so the log's new name, in tasks_app, need not wait for this app.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.AddField(
                    model_name='evaluation',
                    name='reevaluation',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='tasks_app.act'),
                ),
            ],
        ),
    ]

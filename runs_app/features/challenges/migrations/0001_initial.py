import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs_app', '0001_initial'),
        ('tasks_app', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Challenge',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100, unique=True)),
                ('slug', models.SlugField(max_length=100, unique=True)),
                ('description', models.TextField(blank=True)),
                ('direction', models.CharField(choices=[('forward', 'forward'), ('backward', 'backward')], max_length=10)),
                ('evaluations', models.PositiveIntegerField()),
                ('wall_time_s', models.PositiveIntegerField()),
                ('usd', models.FloatField(blank=True, null=True)),
                ('starts_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('created_at', models.DateTimeField()),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='challenges', to='runs_app.device')),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('versions', models.ManyToManyField(related_name='challenges', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='Entry',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('setting', models.CharField(blank=True, max_length=100)),
                ('repeat', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('state', models.CharField(choices=[('running', 'Running'), ('ended', 'Ended'), ('ranked', 'Ranked')], default='running', max_length=10)),
                ('started_at', models.DateTimeField()),
                ('deadline_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('reason', models.CharField(blank=True, max_length=100)),
                ('usd', models.FloatField(blank=True, null=True)),
                ('tokens', models.BigIntegerField(blank=True, null=True)),
                ('transcript', models.TextField(blank=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='runs_app.agent')),
                ('challenge', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='challenges.challenge')),
                ('language_model', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='runs_app.languagemodel')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'entries',
                'ordering': ('started_at', 'pk'),
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='attempt', serialize=False, to='runs_app.submission')),
                ('entry', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='challenges.entry')),
            ],
        ),
        migrations.AddConstraint(
            model_name='challenge',
            constraint=models.CheckConstraint(condition=models.Q(('evaluations__gt', 0), ('wall_time_s__gt', 0)), name='challenge_budget'),
        ),
        migrations.AddConstraint(
            model_name='challenge',
            constraint=models.CheckConstraint(condition=models.Q(('usd__isnull', True), ('usd__gt', 0), _connector='OR'), name='challenge_money'),
        ),
        migrations.AddConstraint(
            model_name='challenge',
            constraint=models.CheckConstraint(condition=models.Q(('ends_at__gt', models.F('starts_at'))), name='challenge_ends_later'),
        ),
        migrations.AddIndex(
            model_name='entry',
            index=models.Index(condition=models.Q(('state__in', ('running', 'ended'))), fields=['state', 'deadline_at'], name='entry_under_way'),
        ),
        migrations.AddConstraint(
            model_name='entry',
            constraint=models.UniqueConstraint(fields=('challenge', 'agent', 'setting', 'repeat'), name='entry_repeat'),
        ),
        migrations.AddConstraint(
            model_name='entry',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', 'running')), models.Q(('ended_at__isnull', False), ('state__in', ('ended', 'ranked'))), _connector='OR'), name='entry_ended_at_iff_ended'),
        ),
    ]

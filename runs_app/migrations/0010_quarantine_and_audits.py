import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0009_run_steps_begun'),
        ('tasks_app', '0001_tasks'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='QuarantineDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('cleared', 'Cleared'), ('upheld', 'Upheld')], max_length=10)),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.AddField(
            model_name='evaluation',
            name='audited',
            field=models.CharField(choices=[('none', 'Not audited'), ('waiting', 'Audit under way'), ('passed', 'Verified'), ('failed', 'Audit failed'), ('suspicious', 'Audit in quarantine'), ('inconclusive', 'Audit without a result')], default='none', max_length=15),
        ),
        migrations.AddField(
            model_name='evaluation',
            name='quarantine',
            field=models.CharField(choices=[('none', 'No suspicion'), ('open', 'In quarantine'), ('cleared', 'Cleared'), ('upheld', 'Upheld')], default='none', max_length=10),
        ),
        migrations.AlterField(
            model_name='evaluation',
            name='mode',
            field=models.CharField(choices=[('compile', 'compile'), ('test', 'test'), ('quick', 'quick'), ('ranked', 'ranked'), ('profile', 'profile'), ('audit', 'audit')], max_length=10),
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
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('quarantine', 'none'), ('quarantine_case__isnull', True)), models.Q(('quarantine__in', ('open', 'cleared', 'upheld')), ('quarantine_case__isnull', False), ('verdict', 'CORRECT')), _connector='OR'), name='evaluation_quarantine_iff_case'),
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.CheckConstraint(condition=models.Q(('audited', 'none'), models.Q(('audited__in', ['none', 'waiting', 'passed', 'failed', 'suspicious', 'inconclusive']), ('mode', 'ranked')), _connector='OR'), name='evaluation_audited_only_ranked'),
        ),
        migrations.AddField(
            model_name='quarantinedecision',
            name='case',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='runs_app.quarantinecase'),
        ),
        migrations.AddField(
            model_name='quarantinedecision',
            name='decided_by',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
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
    ]

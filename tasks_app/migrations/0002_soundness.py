import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0001_tasks'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                'constraints': [models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='override_has_a_reason')],
            },
        ),
        migrations.CreateModel(
            name='Soundness',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('passed', models.BooleanField()),
                ('mutants', models.PositiveIntegerField()),
                ('survivors', models.JSONField()),
                ('device', models.CharField(blank=True, max_length=100)),
                ('document', models.JSONField()),
                ('created_at', models.DateTimeField()),
                ('version', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='soundness', to='tasks_app.taskversion')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('passed', False), models.Q(('mutants__gt', 0), ('survivors', [])), _connector='OR'), name='soundness_passed_without_survivors')],
            },
        ),
    ]

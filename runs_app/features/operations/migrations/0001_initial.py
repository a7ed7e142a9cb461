import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs_app', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Emptying',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('parts', models.JSONField()),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('waiting', models.PositiveIntegerField()),
                ('cancelled', models.PositiveIntegerField(default=0)),
                ('moved_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='emptyings', to='runs_app.device')),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'constraints': [models.UniqueConstraint(condition=models.Q(('finished_at__isnull', True)), fields=('device',), name='emptying_one_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='RunnerReading',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('temperature_c', models.FloatField(blank=True, null=True)),
                ('clock_mhz', models.FloatField(blank=True, null=True)),
                ('memory_clock_mhz', models.FloatField(blank=True, null=True)),
                ('power_w', models.FloatField(blank=True, null=True)),
                ('runner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='readings', to='runs_app.runner')),
            ],
            options={
                'ordering': ('runner', 'at'),
                'indexes': [models.Index(fields=['runner', 'at'], name='reading_of_runner')],
            },
        ),
    ]

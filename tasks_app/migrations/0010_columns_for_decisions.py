"""Columns for what was read out of the audit log; the next migration fills them from it."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0009_audit_entry'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='draft',
            name='base_version',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='tasks_app.taskversion'),
        ),
        migrations.AddField(
            model_name='draft',
            name='follows',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tasks_app.task'),
        ),
        migrations.AddField(
            model_name='draft',
            name='last_reason',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='draft',
            name='versions',
            field=models.ManyToManyField(blank=True, related_name='made_in', to='tasks_app.taskversion'),
        ),
        migrations.AddField(
            model_name='task',
            name='labelled',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='task',
            name='published_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='task',
            name='why_retired',
            field=models.TextField(blank=True),
        ),
    ]

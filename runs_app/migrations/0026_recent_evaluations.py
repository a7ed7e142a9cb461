"""Indexes for what ended last anywhere, and for what came last to a device."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0025_reevaluation_rows'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(fields=['-finished_at'], name='evaluation_newest'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(fields=['device', '-created_at'], name='evaluation_of_device'),
        ),
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('mode', 'ranked'), ('verdict', 'CORRECT')), fields=['device', '-finished_at'], name='evaluation_right'),
        ),
    ]

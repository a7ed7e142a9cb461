from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0041_newest_submissions'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='evaluation',
            index=models.Index(condition=models.Q(('mode', 'ranked'), ('replaced', False)), fields=['submission', 'device'], name='evaluation_standing'),
        ),
    ]

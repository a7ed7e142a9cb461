from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0039_record_by_task'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='evaluation',
            name='evaluation_board',
        ),
    ]

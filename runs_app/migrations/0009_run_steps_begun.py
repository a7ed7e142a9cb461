from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0008_endpoint_address"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="steps_begun",
            field=models.PositiveIntegerField(default=0),
        ),
    ]

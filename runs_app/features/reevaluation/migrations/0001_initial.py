import django.db.models.deletion
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
            name='Reevaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('devices', models.JSONField()),
                ('chosen', models.CharField(default="each agent's best kernel", max_length=100)),
                ('created_at', models.DateTimeField()),
                ('asked_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('evaluations', models.ManyToManyField(related_name='reevaluations', to='runs_app.evaluation')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tasks_app.taskversion')),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reevaluations', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
    ]

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs_app', '0001_initial'),
        ('tasks_app', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='TaskJudgement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdicts', models.JSONField(default=list)),
                ('problem', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('call', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='judgement', to='runs_app.languagemodelcall')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='judgements', to='tasks_app.taskversion')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'constraints': [models.CheckConstraint(condition=models.Q(('problem', ''), ('verdicts', []), _connector='OR'), name='judgement_problem_has_no_verdict')],
            },
        ),
    ]

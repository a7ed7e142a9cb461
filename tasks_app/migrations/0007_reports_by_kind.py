import django.db.models.deletion
from django.db import migrations, models


def name_kinds(apps, schema_editor):
    """Every device but `cpu` has been a CUDA one."""
    reports = apps.get_model('tasks_app', 'Soundness').objects
    reports.exclude(device__in=('', 'cpu')).update(kind='cuda')


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0006_judged_act'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='soundness',
            options={'ordering': ('passed', '-created_at', '-pk')},
        ),
        migrations.AddField(
            model_name='soundness',
            name='kind',
            field=models.CharField(choices=[('cuda', 'cuda'), ('cpu', 'cpu')], default='cpu', max_length=10),
            preserve_default=False,
        ),
        migrations.RunPython(name_kinds, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='soundness',
            name='version',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='tasks_app.taskversion'),
        ),
        migrations.AddConstraint(
            model_name='soundness',
            constraint=models.UniqueConstraint(fields=('version', 'kind'), name='soundness_once_a_kind'),
        ),
    ]

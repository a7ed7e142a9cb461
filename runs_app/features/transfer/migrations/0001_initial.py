import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs_app', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ResultImport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('site', models.CharField(max_length=40)),
                ('note', models.CharField(blank=True, max_length=500)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('results', models.PositiveIntegerField()),
                ('exported_at', models.DateTimeField()),
                ('imported_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('-imported_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='ImportedSubmission',
            fields=[
                ('submission', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='imported', serialize=False, to='runs_app.submission')),
                ('result_import', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='submissions', to='transfer.resultimport')),
            ],
        ),
    ]

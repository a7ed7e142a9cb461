import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('runs_app', '0001_initial'),
        ('tasks_app', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='NoticeSettings',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='notice_settings', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('verdict', models.CharField(choices=[('off', 'Not at all'), ('site', 'On the site'), ('email', 'On the site, and by e-mail at once'), ('daily', 'On the site, and in one e-mail a day')], default='site', max_length=10)),
                ('place', models.CharField(choices=[('off', 'Not at all'), ('site', 'On the site'), ('email', 'On the site, and by e-mail at once'), ('daily', 'On the site, and in one e-mail a day')], default='email', max_length=10)),
                ('run', models.CharField(choices=[('off', 'Not at all'), ('site', 'On the site'), ('email', 'On the site, and by e-mail at once'), ('daily', 'On the site, and in one e-mail a day')], default='site', max_length=10)),
                ('watched', models.CharField(choices=[('off', 'Not at all'), ('site', 'On the site'), ('email', 'On the site, and by e-mail at once'), ('daily', 'On the site, and in one e-mail a day')], default='daily', max_length=10)),
            ],
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=500)),
                ('salt', models.CharField(max_length=64)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('stopped_reason', models.CharField(blank=True, max_length=300)),
                ('created_at', models.DateTimeField()),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
            },
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('verdict', 'Verdicts on your ranked submissions'), ('place', 'Somebody takes your place on a board'), ('run', 'Your runs end or pause'), ('watched', 'Something that you watch changes')], max_length=10)),
                ('text', models.CharField(max_length=500)),
                ('url', models.CharField(max_length=300)),
                ('created_at', models.DateTimeField()),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('awaits_digest', models.BooleanField(default=False)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(fields=['user', '-created_at'], name='notice_of_user'), models.Index(condition=models.Q(('read_at__isnull', True)), fields=['user'], name='notice_unread'), models.Index(condition=models.Q(('awaits_digest', True)), fields=['created_at'], name='notice_digest')],
            },
        ),
        migrations.CreateModel(
            name='Watch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField()),
                ('device', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='runs_app.device')),
                ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='runs_app.run')),
                ('task', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='tasks_app.task')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='watches', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'constraints': [models.UniqueConstraint(fields=('user', 'key'), name='watch_once'), models.CheckConstraint(condition=models.Q(models.Q(('device__isnull', True), ('run__isnull', False), ('task__isnull', True)), models.Q(('run__isnull', True), ('task__isnull', False)), models.Q(('device__isnull', False), ('run__isnull', True)), _connector='OR'), name='watch_something')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('payload', models.JSONField()),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField()),
                ('next_at', models.DateTimeField()),
                ('done_at', models.DateTimeField(blank=True, null=True)),
                ('status', models.PositiveIntegerField(blank=True, null=True)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('webhook', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='notices.webhook')),
            ],
            options={
                'ordering': ('-created_at', '-pk'),
                'indexes': [models.Index(condition=models.Q(('done_at__isnull', True)), fields=['next_at'], name='delivery_due')],
            },
        ),
    ]

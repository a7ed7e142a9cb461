"""What decisions had been read out of the audit log stands in columns; the log stays as it is."""

from django.db import migrations


def fill_drafts(apps, schema_editor):
    """What each draft follows, which version was public then, what it became, what it was told."""
    entries = apps.get_model('tasks_app', 'AuditEntry').objects
    versions = apps.get_model('tasks_app', 'TaskVersion').objects
    drafts = apps.get_model('tasks_app', 'Draft').objects
    made = apps.get_model('tasks_app', 'Draft').versions.through.objects
    for entry in entries.filter(kind='uploaded', draft__isnull=False).order_by('created_at', 'pk'):
        public = entry.details.get('public')
        base = versions.filter(task=entry.task_id, number=public).first() if public else None
        found = {'follows': entry.task_id, 'base_version': base}
        known = {name: value for name, value in found.items() if value is not None}
        if known:
            drafts.filter(pk=entry.draft_id).update(**known)
    told = entries.filter(kind__in=('closed', 'returned'), draft__isnull=False)
    for entry in told.order_by('created_at', 'pk'):  # the newest one is what it was told last
        drafts.filter(pk=entry.draft_id).update(last_reason=entry.reason)
    pairs = {*drafts.filter(version__isnull=False).values_list('pk', 'version')}
    named = entries.filter(draft__isnull=False, version__isnull=False).order_by()
    pairs |= {*named.values_list('draft', 'version')}
    made.bulk_create(
        [made.model(draft_id=draft, taskversion_id=version) for draft, version in sorted(pairs)],
        batch_size=500,
    )


def fill_tasks(apps, schema_editor):
    """Who made each task public, why it was retired, and whether anybody has labelled it."""
    entries = apps.get_model('tasks_app', 'AuditEntry').objects.filter(task__isnull=False)
    tasks = apps.get_model('tasks_app', 'Task').objects
    tasks.filter(pk__in=entries.filter(kind='labelled').order_by().values('task')).update(labelled=True)
    for entry in entries.filter(kind__in=('published', 'version')).order_by('created_at', 'pk'):
        tasks.filter(pk=entry.task_id).update(published_by=entry.actor_id)
    for entry in entries.filter(kind='retired').order_by('created_at', 'pk'):
        tasks.filter(pk=entry.task_id, state='retired').update(why_retired=entry.reason)


def empty(apps, schema_editor):
    """The columns are about to go."""
    apps.get_model('tasks_app', 'Draft').versions.through.objects.all().delete()


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0010_columns_for_decisions'),
    ]

    operations = [
        migrations.RunPython(fill_drafts, empty),
        migrations.RunPython(fill_tasks, migrations.RunPython.noop),
    ]

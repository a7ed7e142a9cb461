"""How sure the speedups against single baselines are: boards read it from rows."""

import math

from django.db import migrations, models

CHUNK = 200


def half_width(measurement):
    return (measurement['high_ns'] - measurement['low_ns']) / 2 / measurement['time_ns']


def width(rows, name):
    """As `runs_app.work.outcome` has it; None where a workload lacks the baseline."""
    if not rows or any(name not in row.get('baselines', {}) for row in rows):
        return None
    parts = [half_width(r['measurement']) ** 2 + half_width(r['baselines'][name]) ** 2 for r in rows]
    return math.sqrt(sum(parts)) / len(parts)


def fill(apps, schema_editor):
    """From the results of what stands on boards, or may."""
    evaluation = apps.get_model('runs_app', 'Evaluation')
    rows = evaluation.objects.filter(mode='ranked', verdict='CORRECT', result__isnull=False)
    pages = rows.order_by('pk').values_list('pk', 'result__document').iterator(chunk_size=CHUNK)
    changed = []
    for key, document in pages:
        measured = [
            row for row in document.get('workloads', [])
            if not row.get('hidden') and row.get('measurement')
        ]
        eager, compiled = width(measured, 'eager'), width(measured, 'compiled')
        if eager is not None or compiled is not None:
            changed.append(evaluation(pk=key, eager_spread=eager, compiled_spread=compiled))
    evaluation.objects.bulk_update(changed, ['eager_spread', 'compiled_spread'], batch_size=CHUNK)


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0028_agent_owners'),
    ]

    operations = [
        migrations.AddField(
            model_name='evaluation',
            name='eager_spread',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='evaluation',
            name='compiled_spread',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]

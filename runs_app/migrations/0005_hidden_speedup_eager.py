from django.db import migrations


def take_eager(apps, schema_editor):
    """Until here the hidden speedup was against the best baseline."""
    evaluations = apps.get_model("runs_app", "Evaluation").objects
    results = apps.get_model("runs_app", "Result").objects
    known = results.filter(evaluation__hidden_speedup__isnull=False)
    for key, document in known.values_list("pk", "document").iterator(chunk_size=100):
        eager = (document.get("hidden_speedups") or {}).get("eager")
        evaluations.filter(pk=key).update(hidden_speedup=eager)


class Migration(migrations.Migration):

    dependencies = [
        ('runs_app', '0004_background'),
    ]

    operations = [migrations.RunPython(take_eager, migrations.RunPython.noop)]

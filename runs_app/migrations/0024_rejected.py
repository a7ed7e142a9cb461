"""A case that a person decided against is called rejected, not upheld."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import Q, Value
from django.db.models.functions import Concat, Substr

OLD, NEW = "upheld", "rejected"
STATES = [
    ("none", "No suspicion"),
    ("open", "In quarantine"),
    ("cleared", "Cleared"),
    ("rejected", "Rejected"),
]
CONSTRAINTS = [
    ("evaluation", "evaluation_quarantine_iff_case"),
    ("quarantinecase", "quarantine_case_state"),
    ("quarantinedecision", "quarantine_decision_state"),
]
COLUMNS = [
    ("Evaluation", "quarantine"),
    ("QuarantineCase", "state"),
    ("QuarantineDecision", "state"),
]
PAYLOADS = [("decided", "state"), ("finished", "quarantine")]


def _rename(apps: Any, old: str, new: str) -> None:
    for name, column in COLUMNS:
        model = apps.get_model("runs_app", name)
        model.objects.filter(**{column: old}).update(**{column: new})
    audits = apps.get_model("runs_app", "BoardAudit").objects
    rest = Substr("reason", len(old) + 1)
    audits.filter(reason__startswith=f"{old} by a person: ").update(reason=Concat(Value(new), rest))
    events = apps.get_model("runs_app", "EvaluationEvent").objects
    for kind, key in PAYLOADS:
        for event in events.filter(kind=kind, **{f"payload__{key}": old}).iterator(100):
            changed = {**event.payload, key: new}
            events.filter(pk=event.pk).update(payload=changed)


def forwards(apps: Any, schema_editor: Any) -> None:
    """Rename what is stored."""
    _rename(apps, OLD, NEW)


def backwards(apps: Any, schema_editor: Any) -> None:
    """Name it as it was before."""
    _rename(apps, NEW, OLD)


class Migration(migrations.Migration):
    dependencies = [("runs_app", "0023_candidate_submissions")]
    operations = [
        *(migrations.RemoveConstraint(model, name) for model, name in CONSTRAINTS),
        migrations.AlterField(
            "evaluation",
            "quarantine",
            models.CharField(choices=STATES, default="none", max_length=10),
        ),
        migrations.AlterField(
            "quarantinecase",
            "state",
            models.CharField(choices=STATES[1:], default="open", max_length=10),
        ),
        migrations.AlterField(
            "quarantinedecision", "state", models.CharField(choices=STATES[2:], max_length=10)
        ),
        migrations.RunPython(forwards, backwards),
        migrations.AddConstraint(
            "evaluation",
            models.CheckConstraint(
                condition=Q(quarantine="none", quarantine_case__isnull=True)
                | Q(
                    quarantine__in=("open", "cleared", "rejected"),
                    quarantine_case__isnull=False,
                    verdict="CORRECT",
                ),
                name="evaluation_quarantine_iff_case",
            ),
        ),
        migrations.AddConstraint(
            "quarantinecase",
            models.CheckConstraint(
                condition=Q(state__in=("open", "cleared", "rejected")),
                name="quarantine_case_state",
            ),
        ),
        migrations.AddConstraint(
            "quarantinedecision",
            models.CheckConstraint(
                condition=Q(state__in=("cleared", "rejected")),
                name="quarantine_decision_state",
            ),
        ),
    ]

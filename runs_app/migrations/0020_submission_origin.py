"""How a submission came to be entered has a column."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import F, Q

ORIGINS = [
    ("person", "Entered in the form"),
    ("api", "Entered over the API"),
    ("run", "Measures a candidate for its run"),
    ("entered", "A run's candidate, entered for boards"),
    ("dry_run", "Tried before its version is public"),
    ("shipped", "Came with the task"),
    ("carried", "Carried from another version"),
]
NEVER_PUBLIC = Q(task_version__published_at__isnull=True)
RULES = [
    ("run", Q(run__isnull=False)),
    ("carried", Q(carried_from__isnull=False)),
    ("entered", Q(entered_from__isnull=False)),
    ("shipped", Q(agent__kind="shipped")),
    ("dry_run", Q(private=True) & (NEVER_PUBLIC | Q(created_at__lt=F("task_version__published_at")))),
]
"""What pages made of the other columns; the first rule that holds decides.

Nothing told the API from the form, so rows of both are of a person.
"""


def derive(apps: Any, schema_editor: Any) -> None:
    """Give each row the origin that pages guessed; none is changed twice.

    PostgreSQL would check a row's references again, and refuse constraints until it has.
    """
    submissions = apps.get_model("runs_app", "Submission").objects.order_by()
    for origin, rule in RULES:
        keys = submissions.filter(rule, origin="person").values("pk")
        submissions.filter(pk__in=keys).update(origin=origin)


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0019_candidate_submission"),
        ("tasks_app", "0008_cancelled_act"),
    ]
    operations = [
        migrations.AddField(
            model_name="submission",
            name="origin",
            field=models.CharField(choices=ORIGINS, default="person", max_length=10),
            preserve_default=False,
        ),
        migrations.RunPython(derive, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="submission",
            constraint=models.CheckConstraint(
                condition=Q(origin="run", run__isnull=False)
                | Q(
                    origin__in=("person", "api", "entered", "dry_run", "shipped", "carried"),
                    run__isnull=True,
                ),
                name="submission_run_iff_origin",
            ),
        ),
        migrations.AddConstraint(
            model_name="submission",
            constraint=models.CheckConstraint(
                condition=Q(carried_from__isnull=True) | Q(origin="carried"),
                name="submission_carried_from_origin",
            ),
        ),
        migrations.AddConstraint(
            model_name="submission",
            constraint=models.CheckConstraint(
                condition=~Q(origin="dry_run") | Q(private=True),
                name="submission_dry_run_private",
            ),
        ),
    ]

"""What the site's rows say; run inside the site, by `manage.py shell`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

COMMAND = "from tests.bench.chaos.facts import tell; tell()"


def tell() -> None:
    """Print all facts as one line of JSON."""
    from runs_app.core.messaging import orders
    from runs_app.core.messaging.stream import DEAD_LETTERS
    from runs_app.models import BaselineMeasurement, Submission

    letters: Any = orders.connection().xrange(DEAD_LETTERS)
    document = {
        "submissions": [str(pk) for pk in Submission.objects.values_list("pk", flat=True)],
        "evaluations": _evaluations(),
        "others": [row.status for row in BaselineMeasurement.objects.all()],
        "dead_letters": [fields[b"reason"].decode() for _, fields in letters],
    }
    print(json.dumps(document))


def _evaluations() -> list[dict[str, Any]]:
    from runs_app.models import Evaluation, EvaluationEvent, Result

    results = Counter(Result.objects.values_list("evaluation", flat=True))
    events = EvaluationEvent.objects.order_by("position")
    finished = Counter(events.filter(kind="finished").values_list("evaluation", flat=True))
    lost: dict[Any, list[str]] = {}
    for row in events.filter(kind__in=("lost", "requeued")):
        lost.setdefault(row.evaluation_id, []).append(row.payload.get("reason", ""))
    return [
        {
            "id": str(row.pk),
            "submission": str(row.submission_id),
            "task": row.task_version.task.slug,
            "mode": row.mode,
            "status": row.status,
            "verdict": row.verdict,
            "reason": row.reason,
            "attempt": row.attempt,
            "runner": row.runner.name if row.runner else "",
            "results": results[row.pk],
            "finished": finished[row.pk],
            "finished_at": row.finished_at.timestamp() if row.finished_at else None,
            "lost": lost.get(row.pk, []),
        }
        for row in Evaluation.objects.select_related("runner", "task_version__task")
    ]

"""How many events of runners a second `ingest_events` records."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.core.management import call_command

from gpu_runner.data import codec
from gpu_runner.data.event import EVENT_STREAM, Event, EventKind
from gpu_runner.data.verdict import Stage
from runs_app.messaging import queues
from runs_app.models import Evaluation, Submission
from tasks_app.models import TaskVersion
from tests import factories as make
from tests.bench.scale.bulk import insert

_STAGES = 18
_MODE = "quick"
_AT_WORK = 40
"""Evaluations whose events come between one another, as from so many busy slots."""


def events_per_second(evaluations: int = 500) -> tuple[float, float]:
    """Events a second, and events for a second of processor time of the ingester.

    Each evaluation starts, has 18 stages, and ends with a result.
    """
    rows = queued(evaluations)
    redis = queues.connection()
    with redis.pipeline(transaction=False) as pipe:
        for event in _interleaved(rows):
            pipe.xadd(EVENT_STREAM, {"event": json.dumps(codec.encode(event))})
        pipe.execute()
    count = redis.xlen(EVENT_STREAM)
    began, cpu = time.perf_counter(), time.process_time()
    call_command("ingest_events", "--drain", verbosity=0)
    took, own = time.perf_counter() - began, time.process_time() - cpu
    ended = Evaluation.objects.filter(pk__in=[row.pk for row in rows], verdict="CORRECT")
    assert ended.count() == evaluations, "some were not recorded"
    return count / took, count / own


def queued(count: int) -> list[Evaluation]:
    """New evaluations of one submission, waiting."""
    version = TaskVersion.objects.filter(task__slug="scale").first() or make.make_task_version()
    submission = Submission.objects.filter(task_version=version).first()
    if submission is None:
        submission = make.make_submission(task_version=version)
    now = datetime.now(UTC)
    keys = [uuid.uuid4() for _ in range(count)]
    insert(
        Evaluation,
        (
            {
                "id": key,
                "submission_id": submission.pk,
                "task_version_id": version.pk,
                "direction": "forward",
                "device_id": "cpu",
                "mode": _MODE,
                "created_at": now,
                "queued_at": now,
            }
            for key in keys
        ),
    )
    return list(Evaluation.objects.filter(pk__in=keys))


def _interleaved(rows: list[Evaluation]) -> Iterator[Event]:
    for start in range(0, len(rows), _AT_WORK):
        lives = [_life(row) for row in rows[start : start + _AT_WORK]]
        for moments in zip(*lives, strict=True):
            yield from moments


def _life(row: Evaluation) -> list[Event]:
    result: dict[str, Any] = {"result": codec.encode(make.make_result(row))}
    stages = [
        make.make_event(
            row,
            seq=seq,
            kind=EventKind.STAGE,
            payload={"stage": list(Stage)[seq % len(Stage)].value, "state": "done", "detail": ""},
        )
        for seq in range(2, 2 + _STAGES)
    ]
    first = make.make_event(row, seq=1, payload={"runner": "nobody", "at": 0.0})
    last = make.make_event(row, seq=2 + _STAGES, kind=EventKind.FINISHED, payload=result)
    return [first, *stages, last]

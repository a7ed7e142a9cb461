"""How many events of runners a second `ingest_events` records."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.core.management import call_command

from gpu_runner.data import codec, mailbox
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.verdict import Stage
from runs_app.core.messaging import orders
from runs_app.models import Evaluation, Runner, Status, Submission
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
    rows = held(evaluations)
    stream = stream_of(rows)
    redis = orders.connection()
    with redis.pipeline(transaction=False) as pipe:
        for event in _interleaved(rows):
            pipe.xadd(stream, {mailbox.EVENT: json.dumps(codec.encode(event))})
        pipe.execute()
    count = redis.xlen(stream)
    began, cpu = time.perf_counter(), time.process_time()
    call_command("ingest_events", "--drain", verbosity=0)
    took, own = time.perf_counter() - began, time.process_time() - cpu
    ended = Evaluation.objects.filter(pk__in=[row.pk for row in rows], verdict="CORRECT")
    assert ended.count() == evaluations, "some were not recorded"
    return count / took, count / own


def stream_of(rows: list[Evaluation]) -> str:
    """Where the runner speaks that holds these."""
    assert rows[0].runner is not None
    return mailbox.events_key(rows[0].runner.token.mailbox)


def held(count: int) -> list[Evaluation]:
    """New evaluations of one submission, handed over to a runner."""
    runner = Runner.objects.filter(name="test.bench").first() or make.make_runner(name="bench")
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
                "status": Status.RUNNING.value,
                "runner_id": runner.pk,
                "runner_boot_id": runner.boot_id,
                "created_at": now,
                "queued_at": now,
                "started_at": now,
                "last_event_at": now,
            }
            for key in keys
        ),
    )
    return list(Evaluation.objects.select_related("runner__token").filter(pk__in=keys))


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

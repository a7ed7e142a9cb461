"""How many events of runners a second `ingest_events` records."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.core.management import call_command
from django.db.models import Q

from gpu_runner.data import codec, mailbox
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.verdict import Stage
from runs_app.core.messaging import orders
from runs_app.core.work import lifecycle
from runs_app.models import Evaluation, Runner, Status
from tasks_app.models import TaskVersion
from tests import evidence
from tests import factories as make

_STAGES = 18
_MODE = "quick"
_AT_WORK = 40
"""Evaluations whose events come between one another, as from so many busy slots."""


def events_per_second(evaluations: int = 500) -> tuple[float, float]:
    """Events a second, and events for a second of processor time of the ingester.

    Each evaluation starts, has 18 stages, and ends with a result.
    """
    for job in lifecycle.find(Q(status=Status.QUEUED)):
        orders.enqueue(job)  # what was seeded is nothing that a queue forgot
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
    """New evaluations, each of a submission of its own, handed over to a runner."""
    runner = Runner.objects.filter(name="test.bench").first() or make.make_runner(name="bench")
    version = TaskVersion.objects.filter(task__slug="scale").first() or make.make_task_version()
    rows = Evaluation.objects.filter(pk__in=[_submitted(version) for _ in range(count)])
    now = datetime.now(UTC)
    rows.update(
        status=Status.RUNNING.value,
        runner=runner,
        runner_boot_id=runner.boot_id,
        queued_at=now,
        started_at=now,
        last_event_at=now,
    )
    return list(rows.select_related("runner__token", "submission", "task_version__task"))


def _submitted(version: TaskVersion) -> uuid.UUID:
    source = f"// {uuid.uuid4()}\n{make.SOURCE}"
    key: uuid.UUID = make.make_evaluation(task_version=version, source=source, mode=_MODE).pk
    return key


def _interleaved(rows: list[Evaluation]) -> Iterator[Event]:
    for start in range(0, len(rows), _AT_WORK):
        lives = [_life(row) for row in rows[start : start + _AT_WORK]]
        for moments in zip(*lives, strict=True):
            yield from moments


def _life(row: Evaluation) -> list[Event]:
    result: dict[str, Any] = {"result": codec.encode(evidence.result(row.request(), 1e4))}
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

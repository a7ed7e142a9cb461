"""Many events of runners at once leave what each alone would."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gpu_runner.data import codec
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.verdict import Mode
from runs_app.checks.services import request_check
from runs_app.errors import EventError
from runs_app.models import Evaluation
from runs_app.runners.events import record_event, record_events
from runs_app.work import lifecycle
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def stage(name: str) -> dict[str, Any]:
    return {"stage": name, "state": "running", "elapsed_s": 0.5, "detail": ""}


def life(evaluation: Evaluation) -> list[Event]:
    """All events of an evaluation that goes well."""
    result = {"result": codec.encode(make.make_result(evaluation))}
    return [
        make.make_event(evaluation, seq=1),
        make.make_event(evaluation, seq=2, kind=EventKind.ALIVE, payload={}),
        make.make_event(evaluation, seq=3, kind=EventKind.STAGE, payload=stage("build")),
        make.make_event(evaluation, seq=4, kind=EventKind.STAGE, payload=stage("check")),
        make.make_event(evaluation, seq=5, kind=EventKind.FINISHED, payload=result),
    ]


def record_one_by_one(*, events: Sequence[Event], now: datetime) -> None:
    """What `record_events` must come to."""
    for event in events:
        record_event(event=event, now=now)


def seen(evaluation: Evaluation) -> tuple[Any, ...]:
    """What became of an evaluation, and its log."""
    evaluation.refresh_from_db()
    events = evaluation.events.values_list("position", "kind", "attempt", "seq", "ignored")
    columns = ("status", "verdict", "attempt", "stage", "last_seq", "events_stored", "started_at")
    return (*(getattr(evaluation, name) for name in columns), list(events.order_by("position")))


def test_many_events_at_once_leave_what_each_alone_would() -> None:
    alone, together = (
        [make.make_evaluation(source=f"{make.SOURCE}// {n} {how}") for n in range(3)]
        for how in ("alone", "together")
    )
    for evaluation in alone:
        for event in life(evaluation):
            record_event(event=event, now=make.NOW)
    lives = [life(evaluation) for evaluation in together]
    mixed = [event for moments in zip(*lives, strict=True) for event in moments]
    record_events(events=mixed, now=make.NOW)
    assert [seen(e) for e in together] == [seen(e) for e in alone]


def test_many_events_of_one_evaluation_leave_what_each_alone_would() -> None:
    """A sign of life after a stage must not store the row as it was before the stage."""
    alone, together = (make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(2))
    for event in life(alone):
        record_event(event=event, now=make.NOW)
    started, alive, *rest = life(together)
    record_events(events=[started, alive], now=make.NOW)
    assert seen(together)[5] == together.events.order_by("position").last().position
    record_events(events=rest, now=make.NOW)
    assert seen(together) == seen(alone)


def test_ends_at_once_of_one_submissions_evaluations_leave_what_each_alone_would() -> None:
    """The end of the later one changes the row of the earlier, which goes on in the same batch."""
    found = []
    for how in (record_one_by_one, record_events):
        version = make.make_task_version(name=how.__name__)
        older = make.make_evaluation(mode="ranked", task_version=version)
        newer = lifecycle.evaluate(
            submission=older.submission,
            device=older.device,
            mode=Mode.RANKED,
            now=make.NOW + timedelta(seconds=1),
        )
        ahead, behind = life(newer), life(older)
        how(events=[behind[0], *ahead, *behind[1:]], now=make.NOW)
        newer.refresh_from_db()
        found.append((seen(older), older.replaced, newer.replaced))
        assert found[-1][1:] == (True, False)
    assert found[0] == found[1]


@pytest.mark.parametrize(("mode", "reads"), [("quick", 1), ("ranked", 4)])
def test_rows_are_read_again_after_ends_that_change_others(
    mode: str, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [make.make_evaluation(source=f"{make.SOURCE}// {n}", mode=mode) for n in range(4)]
    events = [event for moments in zip(*map(life, jobs), strict=True) for event in moments]
    lock, read = lifecycle.lock_evaluations, []

    def counted(ids: Collection[UUID]) -> dict[UUID, Evaluation]:
        read.append(ids)
        return lock(ids)

    monkeypatch.setattr(lifecycle, "lock_evaluations", counted)
    record_events(events=events, now=make.NOW)
    assert len(read) == reads
    assert {seen(job)[1] for job in jobs} == {"CORRECT"}


def test_a_check_that_shows_life_at_once_has_begun() -> None:
    check = request_check(
        version=make.make_task_version(),
        device=make.make_cpu(),
        user=make.make_admin(),
        now=make.NOW,
    )
    events = [
        make.make_event(check, seq=1),
        make.make_event(check, seq=2, kind=EventKind.ALIVE, payload={}),
    ]
    record_events(events=events, now=make.NOW)
    check.refresh_from_db()
    assert (check.status, check.last_seq) == ("RUNNING", 2)


def test_a_restart_amid_many_events_is_not_overwritten() -> None:
    first, second = (make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(2))
    make.make_runner(name="host-1", boot_id="boot-1")
    named = {"runner": "host-1", "at": 0.0}
    record_events(
        events=[
            make.make_event(first, seq=1, payload=named),
            make.make_event(second, seq=1, payload=named),
            make.make_heartbeat(boot_id="boot-2"),
            make.make_event(first, seq=2, kind=EventKind.STAGE, payload=stage("check")),
            make.make_event(second, seq=2, kind=EventKind.STAGE, payload=stage("check")),
        ],
        now=make.NOW,
    )
    for evaluation in (first, second):
        evaluation.refresh_from_db()
        assert (evaluation.status, evaluation.attempt, evaluation.stage) == ("QUEUED", 2, "")
        assert evaluation.events.get(attempt=1, seq=2).ignored


def test_of_many_events_one_that_cannot_be_true_stores_none() -> None:
    evaluation = make.make_evaluation()
    events = [*life(evaluation), make.make_event(evaluation, job_id="nobody's")]
    with pytest.raises(EventError):
        record_events(events=events, now=make.NOW)
    assert seen(evaluation)[0] == "QUEUED"


def test_queries_of_many_events_grow_with_jobs_alone(django_assert_max_num_queries: Any) -> None:
    jobs = [make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(4)]
    kind = EventKind.STAGE
    events = [
        make.make_event(job, seq=seq, kind=kind, payload=stage("build"))
        for seq in range(1, 21)
        for job in jobs
    ]
    with django_assert_max_num_queries(12):  # 80 events: a lock, four rows, and one insert
        record_events(events=events, now=make.NOW)
    assert {job.events.count() for job in jobs} == {21}

"""Many events of runners at once leave what each alone would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.verdict import Mode
from runs_app.core.errors import EventError
from runs_app.core.runners.events import record_event, record_events
from runs_app.core.work import lifecycle
from runs_app.models import Evaluation
from tests import factories as make
from tests.unit.runs_app.core.runners import asking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs", "believed")]


def stage(name: str) -> dict[str, Any]:
    return {"stage": name, "state": "running", "elapsed_s": 0.5, "detail": ""}


def life(evaluation: Evaluation) -> list[Event]:
    """All events of an evaluation that is handed over now and goes well."""
    make.hand_over(evaluation)
    result = {"result": codec.encode(make.make_result(evaluation))}
    return [
        make.make_event(evaluation, seq=1),
        make.make_event(evaluation, seq=2, kind=EventKind.ALIVE, payload={}),
        make.make_event(evaluation, seq=3, kind=EventKind.STAGE, payload=stage("build")),
        make.make_event(evaluation, seq=4, kind=EventKind.STAGE, payload=stage("check")),
        make.make_event(evaluation, seq=5, kind=EventKind.FINISHED, payload=result),
    ]


def together(events: Sequence[Event]) -> None:
    """Record them at once."""
    sender = make.make_sender()
    record_events(events=[(sender, event) for event in events], now=make.NOW)


def one_by_one(events: Sequence[Event]) -> None:
    """What `together` must come to."""
    for event in events:
        record_event(event=event, sender=make.make_sender(), now=make.NOW)


def seen(evaluation: Evaluation) -> tuple[Any, ...]:
    """What became of an evaluation, and its log."""
    evaluation.refresh_from_db()
    events = evaluation.events.values_list("position", "kind", "attempt", "seq")
    columns = ("status", "verdict", "attempt", "stage", "last_seq", "events_stored", "started_at")
    return (*(getattr(evaluation, name) for name in columns), list(events.order_by("position")))


def test_many_events_at_once_leave_what_each_alone_would() -> None:
    some, others = (
        [make.make_evaluation(source=f"{make.SOURCE}// {n} {how}") for n in range(3)]
        for how in ("alone", "together")
    )
    for evaluation in some:
        one_by_one(life(evaluation))
    lives = [life(evaluation) for evaluation in others]
    together([event for moments in zip(*lives, strict=True) for event in moments])
    assert [seen(e) for e in others] == [seen(e) for e in some]


def test_many_events_of_one_evaluation_leave_what_each_alone_would() -> None:
    """A sign of life after a stage must not store the row as it was before the stage."""
    one, other = (make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(2))
    one_by_one(life(one))
    started, alive, *rest = life(other)
    together([started, alive])
    assert seen(other)[5] == other.events.order_by("position").last().position
    together(rest)
    assert seen(other) == seen(one)


def test_ends_at_once_of_one_submissions_evaluations_leave_what_each_alone_would() -> None:
    """The end of the later one changes the row of the earlier, which goes on in the same batch."""
    found = []
    for how in (one_by_one, together):
        version = make.make_task_version(name=how.__name__)
        older = make.make_evaluation(mode="ranked", task_version=version)
        fields = {"submission": older.submission, "device": older.device}
        newer = lifecycle.evaluate(**fields, mode=Mode.RANKED, now=make.later(1))
        ahead, behind = life(newer), life(older)
        how([behind[0], *ahead, *behind[1:]])
        newer.refresh_from_db()
        found.append((seen(older), older.replaced, newer.replaced))
        assert found[-1][1:] == (True, False)
    assert found[0] == found[1]


def test_a_check_that_shows_life_at_once_has_begun() -> None:
    check = asking.check()
    make.hand_over(check)
    alive = make.make_event(check, seq=2, kind=EventKind.ALIVE, payload={})
    together([make.make_event(check, seq=1), alive])
    check.refresh_from_db()
    assert (check.status, check.last_seq) == ("RUNNING", 2)


def test_a_restart_amid_many_events_is_not_overwritten() -> None:
    first, second = (make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(2))
    for evaluation in (first, second):
        make.hand_over(evaluation, "host-1")
    stages = {"seq": 2, "kind": EventKind.STAGE, "payload": stage("check")}
    together([
        *(make.make_event(each, seq=1) for each in (first, second)),
        make.make_heartbeat(name="host-1", boot_id="boot-2"),
        *(make.make_event(each, **stages) for each in (first, second)),
    ])  # fmt: skip
    for evaluation in (first, second):
        evaluation.refresh_from_db()
        assert (evaluation.status, evaluation.attempt, evaluation.stage) == ("QUEUED", 2, "")
        assert not evaluation.events.filter(attempt=1, seq=2).exists()


def test_of_many_events_one_that_cannot_be_true_stores_none() -> None:
    evaluation = make.make_evaluation()
    events = [*life(evaluation), make.make_event(evaluation, job_id="nobody's")]
    with pytest.raises(EventError):
        together(events)
    assert seen(evaluation)[:2] == ("RUNNING", "")
    assert evaluation.last_seq == 0


def test_queries_of_many_events_grow_with_jobs_alone(django_assert_max_num_queries: Any) -> None:
    jobs = [make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(4)]
    for job in jobs:
        make.hand_over(job)
    said = {"kind": EventKind.STAGE, "payload": stage("build")}
    events = [make.make_event(job, seq=seq, **said) for seq in range(1, 21) for job in jobs]
    with django_assert_max_num_queries(12):  # 80 events: a lock, four rows, and one insert
        together(events)
    assert {job.events.count() for job in jobs} == {21}

"""How long an evaluation will take, in the words of the form and of its page; what waits."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client, TestCase

from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Mode
from runs_app.core.queue.loads import loads
from runs_app.core.queue.selectors import verdict_in_s, wait_of_people, waiting_reason
from runs_app.core.work.estimate import estimates
from runs_app.models import BaselineMeasurement, Evaluation, Runner
from tests import factories as make

pytestmark = pytest.mark.django_db


def took(seconds: float, **columns: object) -> Evaluation:
    """A finished evaluation that took so long; a minute has passed since the form was shown."""
    cache.clear()
    evaluation = make.make_finished_evaluation(mode=Mode.QUICK)
    changed = {"started_at": make.NOW, "finished_at": make.later(seconds), **columns}
    Evaluation.objects.filter(pk=evaluation.pk).update(**changed)
    return evaluation


def waiting(seconds: float = 0.0, **columns: object) -> Evaluation:
    """One that was queued so long after now."""
    evaluation = make.make_evaluation(**columns)
    later = make.later(seconds)
    Evaluation.objects.filter(pk=evaluation.pk).update(queued_at=later)
    evaluation.refresh_from_db()
    return evaluation


def test_a_mode_takes_what_its_like_took_lately() -> None:
    assert estimates("cpu") == {}
    for seconds in (3.0, 3.0, 3.2):
        took(seconds)
    assert estimates("cpu") == {"quick": "about 3 s"}
    took(400.0)
    assert estimates("cpu") == {"quick": "about 3 s, seldom 7 min"}
    Evaluation.objects.update(finished_at=make.later(9.0))
    assert estimates("cpu") == {"quick": "about 3 s, seldom 7 min"}  # what is told is kept


def test_the_first_evaluation_of_a_mode_is_known_at_once() -> None:
    took(3.0)
    assert set(estimates("cpu")) == {"quick"}
    with TestCase.captureOnCommitCallbacks(execute=True):
        make.make_finished_evaluation(mode="ranked")
    assert set(estimates("cpu")) == {"quick", "ranked"}


def test_what_people_submit_counts_before_the_sites_own() -> None:
    took(60.0, queue_place=Urgency.BACKGROUND.place)
    assert estimates("cpu") == {"quick": "about 60 s"}
    took(2.0)
    assert estimates("cpu") == {"quick": "about 2 s"}


def test_a_verdict_is_told_with_what_comes_before_it() -> None:
    took(4.0)
    make.beat(now=make.later(20))
    first, behind = waiting(), waiting(5.0)
    Evaluation.objects.filter(pk=waiting(1.0).pk).update(queue_place=Urgency.BACKGROUND.place)
    now = make.later(20)
    assert "expect its verdict in about 4 s" in waiting_reason(first, now)
    reason = waiting_reason(behind, now)
    assert reason.startswith("number 2 in the queue")
    assert "expect its verdict in about 8 s" in reason
    assert wait_of_people("cpu", now) == "about 8 s of work ahead of yours"


def test_what_runs_while_nobody_waits_is_told_as_that() -> None:
    assert wait_of_people("cpu", make.NOW) == ""
    make.start(waiting())
    assert wait_of_people("cpu", make.NOW) == "one is being measured now"
    took(4.0)
    assert wait_of_people("cpu", make.NOW) == "one is being measured now, for about 4 s more"
    make.start(waiting(mode=Mode.COMPILE.value))
    assert wait_of_people("cpu", make.NOW) == "one is being measured now, for about 4 s more"
    make.start(waiting())
    assert wait_of_people("cpu", make.NOW) == "2 are being measured now, for about 8 s more"


def test_what_is_left_falls_as_what_runs_progresses() -> None:
    took(40.0)
    make.beat(now=make.later(30))
    running, behind = waiting(), waiting(1.0)
    make.start(running)
    for after_s, left, before in ((0, 40, 80), (10, 30, 70), (30, 10, 50), (60, 1, 41)):
        now = make.later(after_s)
        assert verdict_in_s(running, now) == left
        assert f"in about {before} s" in waiting_reason(behind, now)


def test_each_evaluation_under_way_is_counted_once() -> None:
    version = make.make_task_version()
    for _ in range(2):
        make.make_evaluation(task_version=version)
    make.start(make.make_evaluation(task_version=version))
    make.make_finished_evaluation(task_version=version)
    behind = make.make_evaluation(task_version=version)
    behind.queue_place = Urgency.BACKGROUND.place
    behind.save()
    make.give_to_run(make.make_submission(task_version=version))
    make.make_device()
    cpu, cuda = loads(make.NOW)
    assert (cpu.running, cpu.people, cpu.behind, cpu.waiting) == (1, 2, 2, 4)
    assert (cuda.running, cuda.waiting) == (0, 0)
    assert "no runner for NVIDIA H200" in cuda.reason
    make.make_runner()
    assert loads(make.NOW)[0].reason == ""


def test_baselines_that_run_count_and_have_a_row_in_the_queue(client: Client) -> None:
    """Their runner takes nothing else; what takes longer than usual ends nobody knows when."""
    took(4.0)
    make.beat(now=make.NOW, current=["baselines"])
    waits = waiting()
    at = {"device": make.make_cpu(), "direction": "forward"}
    times = {"created_at": make.NOW, "queued_at": make.NOW, "started_at": make.NOW}
    measured = {"version": waits.task_version, **at, **times}
    BaselineMeasurement.objects.create(
        **measured, status="FINISHED", reason="-", finished_at=make.later(60)
    )
    assert verdict_in_s(waits, make.NOW) == 4.0
    BaselineMeasurement.objects.create(**measured, status="RUNNING")
    assert verdict_in_s(waits, make.later(20)) == 4.0  # another runner is free
    Runner.objects.update(current=["baselines"])
    assert verdict_in_s(waits, make.later(20)) == 44.0
    assert verdict_in_s(waits, make.later(300)) is None
    make.beat(now=make.later(300), current=["baselines"])
    reason = waiting_reason(waits, make.later(300))
    assert reason.endswith("busy with other jobs, and we can't tell for how long")
    page = client.get("/queue/").content.decode()
    assert "measuring compiled baselines" in page.split("<tbody>")[-1]

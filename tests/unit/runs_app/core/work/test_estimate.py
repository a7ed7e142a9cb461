"""How long an evaluation will take, in the words of the form and of its page; what waits."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from gpu_runner.data.verdict import Mode
from runs_app.core.queue.selectors import verdict_in_s, waiting_reason
from runs_app.core.work.estimate import estimates
from runs_app.models import Evaluation
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


def test_what_is_left_falls_as_what_runs_progresses() -> None:
    took(40.0)
    make.beat(now=make.later(30))
    running, behind = waiting(), waiting(1.0)
    make.start(running)
    for after_s, left, before in ((0, 40, 80), (10, 30, 70), (30, 10, 50), (60, 1, 41)):
        now = make.later(after_s)
        assert verdict_in_s(running, now) == left
        assert f"in about {before} s" in waiting_reason(behind, now)

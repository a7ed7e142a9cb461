"""How full the queues are."""

from __future__ import annotations

import pytest

from runs_app.core.queue.loads import loads
from tests import factories

pytestmark = pytest.mark.django_db


def test_each_evaluation_under_way_is_counted_once() -> None:
    version = factories.make_task_version()
    for _ in range(2):
        factories.make_evaluation(task_version=version)
    factories.start(factories.make_evaluation(task_version=version))
    factories.make_finished_evaluation(task_version=version)
    behind = factories.make_evaluation(task_version=version)
    behind.background = True
    behind.save()
    factories.give_to_run(factories.make_submission(task_version=version))
    factories.make_device()
    cpu, cuda = loads(factories.NOW)
    assert (cpu.running, cpu.people, cpu.behind, cpu.waiting) == (1, 2, 2, 4)
    assert (cuda.running, cuda.waiting) == (0, 0)
    assert "no runner for nvidia-h200" in cuda.reason


def test_a_ready_runner_takes_what_waits() -> None:
    factories.make_runner()
    assert [load.reason for load in loads(factories.NOW)] == [""]

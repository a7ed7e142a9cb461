"""A check of a task on its whole way: request, queue, real runner in its jail, events, report."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from gpu_runner.daemon import slots
from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.data.formats import find_task
from gpu_runner.supervisor.device.lock import exclusive
from gpu_runner.supervisor.host.config import SupervisorConfig
from runs_app.checks.services import cancel_check, request_check
from runs_app.messaging import queues
from runs_app.models import Status, TaskCheck
from runs_app.runners.reconcile import reconcile
from tasks_app.publishing.services import publish
from tests import factories as make
from tests.integration.test_ingestion import drain, wait_for
from tests.unit.gpu_runner.daemon.running import RunningDaemon, descendants, supervise

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="no jail can be made here"),
]

StartDaemon = Callable[[], RunningDaemon]


@pytest.fixture
def cache(tmp_path: Path) -> SupervisorConfig:
    """What the daemon and the test have in common: whoever holds its lock has the device."""
    return SupervisorConfig(cache_folder=tmp_path)


@pytest.fixture
def start_daemon(redis_url: str, settings: Any, cache: SupervisorConfig) -> Iterator[StartDaemon]:
    """Starts daemons of the site's Redis, and ends them."""
    settings.REDIS_URL = redis_url
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    started: list[RunningDaemon] = []

    def start() -> RunningDaemon:
        folder = cache.cache_folder
        config = DaemonConfig(
            redis_url=redis_url,
            cache_folder=folder,
            heartbeat_s=0.3,
            people_slots=0,
            ready=False,
        )
        started.append(RunningDaemon(config, supervise))
        return started[-1]

    yield start
    for daemon in started:
        daemon.kill()


def ask() -> TaskCheck:
    """A check of a small built-in task, in the queue."""
    version = publish(data=find_task("vector_add"), now=timezone.now()).version
    return request_check(
        version=version, device=make.make_cpu(), user=make.make_admin(), now=timezone.now()
    )


def wait_until(check: TaskCheck, condition: Callable[[], bool], timeout_s: float = 120) -> None:
    def reached() -> bool:
        drain()
        check.refresh_from_db()
        return condition()

    wait_for(reached, timeout_s)


def work_horse(daemon: int) -> int:
    """The one fork of a fork of the daemon; oracles are programs of their own."""
    told = Path(f"/proc/{daemon}/cmdline").read_bytes()
    forks = [p for p in descendants(daemon) if Path(f"/proc/{p}/cmdline").read_bytes() == told]
    (horse,) = [child for slot in forks for child in descendants(slot) if child in forks]
    return horse


def test_a_check_whose_work_horse_is_killed_is_tried_again_and_ends_with_the_report(
    start_daemon: StartDaemon, cache: SupervisorConfig
) -> None:
    daemon = start_daemon()  # before the lock: what is forked later would hold it as well
    with exclusive(cache):
        check = ask()
        wait_until(check, lambda: check.stage == "waits for cpu")
        assert check.status == Status.RUNNING
        os.kill(work_horse(daemon.process.pid or 0), signal.SIGKILL)
        wait_until(check, lambda: check.attempt == 2)
        assert "SIGKILL" in check.reason
    wait_until(check, lambda: check.is_over, timeout_s=240)
    assert (check.status, check.passed, check.reason) == (Status.FINISHED, True, "")
    assert check.runner is not None
    assert check.version.unproven == ""
    assert check.version.reports.get().device == "cpu"


def test_a_cancelled_check_leaves_the_runner(
    start_daemon: StartDaemon, cache: SupervisorConfig
) -> None:
    daemon = start_daemon()  # before the lock: what is forked later would hold it as well
    with exclusive(cache):
        check = ask()
        wait_until(check, lambda: check.status == Status.RUNNING)
        cancel_check(check=check, user=check.asked_by, now=timezone.now())
        wait_for(lambda: daemon.wait_for_state("ready")["current"] == [])
    drain()
    check.refresh_from_db()
    assert (check.status, check.attempt) == (Status.CANCELLED, 1)


def test_a_runner_of_an_older_version_ends_it_with_the_reason(
    start_daemon: StartDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "FILTER_TASK", "not.known.yet")
    start_daemon()
    check = ask()
    wait_for(lambda: "is not a function" in queues.look(check).refusal)
    for _ in range(3):
        wait_for(lambda: bool(queues.look(check).refusal))
        TaskCheck.objects.filter(pk=check.pk).update(queued_at=make.NOW)
        assert reconcile(now=timezone.now(), listening_since=make.NOW) == 1
        check.refresh_from_db()
    assert (check.status, check.passed) == (Status.FINISHED, None)
    assert "'gpu_runner.daemon.jobs.filter_task' is not a function" in check.reason

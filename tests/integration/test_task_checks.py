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

from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.data.formats import find_task
from gpu_runner.supervisor.device.lock import exclusive
from gpu_runner.supervisor.host.config import SupervisorConfig
from runs_app.core.checks.services import cancel_check, request_check
from runs_app.core.runners.tokens import grant_login
from runs_app.features.curation.drafts.services import create_draft
from runs_app.features.curation.drafts.uploads import Upload, read_upload
from runs_app.models import Status, TaskCheck
from tasks_app.models import Draft
from tasks_app.publishing.services import publish
from tasks_app.publishing.snapshots import snapshot
from tests import factories as make
from tests.integration.test_ingestion import drain, wait_for
from tests.unit.gpu_runner.daemon.running import RunningDaemon, descendants, supervise
from tests.unit.runs_app.core.checks.test_varied_tasks import FILE

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
    settings.REDIS_URL = settings.RUNNERS_REDIS_URL = redis_url
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
        url = grant_login(make.make_runner_token())
        started.append(RunningDaemon(config, supervise, login_url=url))
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


def ask_about_a_file() -> TaskCheck:
    """A check of an uploaded KernelBench file, asked for on its draft's page."""
    folders = read_upload([Upload(name="1_relu.py", content=FILE.encode())]).folders
    author = make.make_user()
    draft = create_draft(user=author, files=folders[0], now=timezone.now())
    version = snapshot(draft=draft, now=timezone.now())
    return request_check(version=version, device=make.make_cpu(), user=author, now=timezone.now())


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


def test_an_imported_file_gets_workloads_of_other_sizes(start_daemon: StartDaemon) -> None:
    start_daemon()
    check = ask_about_a_file()
    wait_until(check, lambda: check.is_over, timeout_s=240)
    assert (check.status, check.passed, check.reason) == (Status.FINISHED, True, "")
    workloads = {w.name: (w.parameters, w.hidden) for w in check.version.data.workloads}
    assert workloads == {
        "default": ({}, False),
        "half": ({"rows": 32}, False),
        "less": ({"rows": 48}, True),
        "odd": ({"rows": 53}, True),
        "more": ({"rows": 40}, True),
        "more_odd": ({"rows": 37}, True),
    }
    assert (check.version.number, check.version.unproven) == (2, "")
    draft = Draft.objects.get()
    assert (draft.version, draft.revision) == (check.version, 2)
    assert snapshot(draft=draft, now=timezone.now()) == check.version


def test_a_cancelled_check_leaves_the_runner(
    start_daemon: StartDaemon, cache: SupervisorConfig
) -> None:
    daemon = start_daemon()  # before the lock: what is forked later would hold it as well
    with exclusive(cache):
        check = ask()
        wait_until(check, lambda: check.status == Status.RUNNING)
        cancel_check(check=check, user=check.asked_by, now=timezone.now())

        def has_left() -> bool:
            drain()  # its heartbeats, which say what it works at
            return daemon.wait_for_state("ready")["current"] == []

        wait_for(has_left)
    drain()
    check.refresh_from_db()
    assert (check.status, check.attempt) == (Status.CANCELLED, 1)

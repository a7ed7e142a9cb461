"""A real kernel leaves in a folder, is judged without any Redis, and comes back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import call_command

from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.spool import SpoolFolder
from runs_app.models import Evaluation
from tasks_app.models import Task
from tests import factories as make
from tests.integration.conftest import Site
from tests.unit.runs_app.features.spool.hosts import work

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]


def begin(folder: Path, cache: Path) -> subprocess.Popen[str]:
    words = ["-m", "gpu_runner", "work", "--spool", str(folder), "--cache-dir", str(cache)]
    environment = {**os.environ, "REDIS_URL": "redis://127.0.0.1:1/0"}
    return subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )


def kill_in_the_middle(worker: subprocess.Popen[str], folder: Path) -> None:
    """SIGKILL it as soon as its only job is at a stage."""
    job = next(iter((folder / "jobs").glob("*.json"))).stem
    told = folder / "events" / f"{job}.jsonl"
    deadline = time.monotonic() + 200
    while not (told.exists() and b'"stage"' in told.read_bytes()):
        assert worker.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    worker.kill()
    worker.communicate()


def kill_manage(site: Site, *words: str, once: Callable[[], bool]) -> None:
    """SIGKILL a command of the site as soon as something has happened; it may be over by then."""
    command = [sys.executable, "manage.py", *words]
    environment = {**os.environ, **site.stack.environment()}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        while not once() and process.poll() is None:
            time.sleep(0.002)
        process.kill()


def test_export_and_import_that_are_killed_lose_and_double_nothing(
    bare_site: Site, tmp_path: Path
) -> None:
    fields = {"user": bare_site.user, "task_version": make.make_task_version()}
    rows = [make.make_evaluation(source=f"{make.SOURCE}// {n}", **fields) for n in range(12)]
    folder = tmp_path / "spool"
    export = ("spool", "export", str(folder), "--device", "cpu")
    kill_manage(bare_site, *export, once=lambda: len(SpoolFolder(folder).job_files()) > 2)
    call_command(*export)
    for row in rows:
        work(folder, row)
    finished = Evaluation.objects.filter(status="FINISHED")
    kill_manage(bare_site, "spool", "import", str(folder), once=finished.exists)
    call_command("spool", "import", str(folder))
    assert finished.count() == len(rows)
    for row in rows:
        kinds = list(row.events.values_list("kind", flat=True))
        assert sorted(kinds) == ["finished", "queued", "spooled", "started"]


def test_a_kernel_is_judged_on_a_host_without_network(bare_site: Site, tmp_path: Path) -> None:
    task = catalog_folder() / "vector_add"
    call_command("load_tasks", str(task), verbosity=0)
    version = Task.objects.get(slug="vector_add").current_version
    assert version is not None
    source = (task / "kernels" / "naive.cpp").read_text()
    fields = {"task_version": version, "user": bare_site.user}
    evaluation = make.make_evaluation(source=source, mode="quick", **fields)
    folder = tmp_path / "spool"
    call_command("spool", "export", str(folder), "--device", "cpu")
    kill_in_the_middle(begin(folder, tmp_path / "cache"), folder)
    call_command("spool", "import", str(folder))
    evaluation.refresh_from_db()
    assert evaluation.status == "RUNNING"
    worker = begin(folder, tmp_path / "cache")
    assert worker.wait(250) == 0, worker.communicate()
    call_command("spool", "import", str(folder))
    evaluation = Evaluation.objects.get(pk=evaluation.pk)
    assert (evaluation.status, evaluation.verdict) == ("FINISHED", "CORRECT"), evaluation.reason
    kinds = list(evaluation.events.order_by("position").values_list("kind", flat=True))
    assert kinds[:3] == ["queued", "spooled", "started"]
    assert kinds[-1] == "finished"

"""A real kernel leaves in a folder, is judged without any Redis, and comes back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.core.management import call_command

from gpu_runner.data.formats import catalog_folder
from runs_app.models import Evaluation
from tasks_app.models import Task
from tests import factories as make
from tests.integration.conftest import Site

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(500)]

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

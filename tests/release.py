"""A small site as the last release left it, and what becomes of it with today's code.

    python -m tests.release write   once a version is tagged: stores its database as text
    python -m tests.release walk    asks for pages of the database at DATABASE_URL

`tests/unit/kbench_web/test_upgrade.py` brings what was stored up to date, and walks it.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

import django

STORED = Path(__file__).parent / "data" / "release.sql.gz"


def write() -> None:
    """Store the database of a small site of this version."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/site.sqlite3"
        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        _fill()
        lines = connection.connection.iterdump()
        STORED.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def _fill() -> None:
    """A right result, a wrong one, and a run."""
    from gpu_runner.data.verdict import Verdict
    from runs_app.core.messaging import orders
    from runs_app.core.runners import results
    from tests import factories as make
    from tests.unit.queued import Jobs

    fake = Jobs()
    stand_ins = {name: getattr(fake, name) for name in ("enqueue", "drop", "waiting", "tell")}
    believed = mock.patch.object(results, "check_plausible", return_value=None)
    with mock.patch.multiple(orders, **stand_ins), believed:
        right = make.make_finished_evaluation(mode="ranked", agent="robot")
        fields = {"mode": "ranked", "task_version": right.task_version, "source": "// wrong\n"}
        make.make_finished_evaluation(Verdict.WRONG_RESULT, **fields)
        make.make_run(task_version=right.task_version)


def walk() -> None:
    """Ask for each kind of page; raises `AssertionError` for one that is not there."""
    django.setup()
    from django.test import Client

    from runs_app.models import Evaluation, Run

    client = Client(headers={"host": "localhost"})
    submission = Evaluation.objects.get(verdict="CORRECT", mode="ranked").submission
    run = Run.objects.get()
    addresses = ["/", "/tasks/", "/tasks/scale/", "/leaderboard/?device=cpu", "/queue/", "/runs/"]
    addresses += [submission.get_absolute_url(), run.get_absolute_url()]
    addresses += ["/api/v1/leaderboard?device=cpu&by=submission"]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
    print(f"{len(addresses)} pages")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
    {"write": write, "walk": walk}[sys.argv[1]]()

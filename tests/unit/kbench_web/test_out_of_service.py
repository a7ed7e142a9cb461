"""While the disk is full or a server is away: 503, one line in the log, and reading goes on."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import OperationalError, connection
from django.test import Client

from kbench_web.models import ApiToken
from kbench_web.out_of_service import what_fails
from runs_app.models import Submission
from tests import factories as make

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """The database cannot grow by a page."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count = {cursor.fetchone()[0]}")
        try:
            yield
        finally:
            cursor.execute("PRAGMA max_page_count = 1000000")


def submit(token: str) -> Any:
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {token}"})
    source = f"{make.SOURCE}// {'x' * 900_000}"
    body = {"task": "scale", "source": source, "language": "cpp"}
    return client.post("/api/v1/submissions", body, content_type="application/json")


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has a disk of its own")
@pytest.mark.django_db(transaction=True)
class TestFullDisk:
    @pytest.mark.usefixtures("jobs")
    def test_reading_goes_on_and_writing_answers_503(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        make.make_cpu()
        make.make_task_version()
        user = make.make_user()
        token = make.make_token(user)
        reader = Client(raise_request_exception=False)
        reader.force_login(user)
        with full_disk():
            for client in (Client(raise_request_exception=False), reader):
                for path in ("/", "/tasks/", "/queue/", "/leaderboard/"):
                    assert client.get(path).status_code == 200, path
            caplog.clear()
            answer = submit(token)
            lines = [r for r in caplog.records if r.levelno >= logging.ERROR]
        assert (answer.status_code, answer["Retry-After"]) == (503, "30")
        assert "disk is full" in answer.json()["reason"]
        assert [r.exc_info for r in lines if "submissions" in r.getMessage()] == [None]
        assert not Submission.objects.exists()
        assert submit(token).status_code == 201

    def test_a_token_reads_though_its_use_cannot_be_recorded(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = make.make_token(make.make_user())

        def fails(*_: Any, **__: Any) -> int:
            raise OperationalError("database or disk is full")

        monkeypatch.setattr("django.db.models.query.QuerySet.update", fails)
        answer = Client().get("/api/v1/tasks", HTTP_AUTHORIZATION=f"Bearer {token}")
        assert answer.status_code == 200
        assert ApiToken.objects.get().last_used_at is None


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away = {"NAME": "/nowhere/kbench.sqlite3", "HOST": "127.0.0.1", "PORT": "1"}
    connection.close()
    with monkeypatch.context() as patch:
        for name, value in away.items():
            patch.setitem(connection.settings_dict, name, value)
        client = Client(raise_request_exception=False)
        page, answer = client.get("/tasks/"), client.get("/api/v1/tasks")
    assert (page.status_code, page["Retry-After"]) == (503, "30")
    assert "The database" in page.content.decode()
    assert page.content.decode().count("<h1") == 1
    assert (answer.status_code, answer["Retry-After"]) == (503, "30")
    assert answer.json()["reason"].startswith("the database")
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.exc_info for record in errors] == [None, None]


@pytest.mark.django_db
def test_a_mistake_of_ours_stays_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("runs_app.core.queue.views.queue_overview", fails)
    monkeypatch.setattr("runs_app.core.queue.api.queue_overview", fails)
    client = Client(raise_request_exception=False)
    page, answer = client.get("/queue/"), client.get("/api/v1/queue")
    assert (page.status_code, answer.status_code) == (500, 500)
    assert "wrong on our side" in page.content.decode()
    assert "something went wrong in kbench" in answer.json()["reason"]
    assert all(record.exc_info for record in caplog.records if record.levelno >= logging.ERROR)


@pytest.mark.django_db
def test_which_errors_pass_by_themselves() -> None:
    for error, words in (
        (redis.ResponseError("MISCONF Errors writing to the AOF file"), "Redis"),
        (redis.OutOfMemoryError("command not allowed"), "Redis"),
        (redis.ConnectionError("refused"), "Redis"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (redis.ResponseError("WRONGTYPE Operation against a key"), ""),
        (OSError(errno.ENOENT, "No such file"), ""),
        (KeyError("name"), ""),
    ):
        found = what_fails(error)
        assert words in found if words else not found
    if connection.vendor == "sqlite":  # PostgreSQL calls it a ProgrammingError
        with pytest.raises(OperationalError) as caught, connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM nowhere")
        assert what_fails(caught.value) == ""


_READS = """
import os, resource, signal
os.environ["DJANGO_SETTINGS_MODULE"] = "kbench_web.settings"
import django
django.setup()
from django.db import connection
from kbench_web import held_database
if {held}:
    held_database.install()
def count():
    with connection.cursor() as cursor:
        found = cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    connection.close()
    return found
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE things (name)")
connection.close()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can grow, as on a full disk
print(count())
"""


@pytest.mark.parametrize("held", [True, False])
def test_a_database_that_is_held_open_can_be_read_on_a_full_disk(
    tmp_path: Path, *, held: bool
) -> None:
    environment = {**os.environ, "KBENCH_DATA_DIR": str(tmp_path)}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run(
        [sys.executable, "-c", _READS.format(held=held)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is held, done.stderr[-500:]
    assert "disk I/O error" in done.stderr or done.stdout == "1\n"

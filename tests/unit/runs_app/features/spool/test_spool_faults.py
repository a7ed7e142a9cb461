"""One file that cannot be read stops no other job, and nothing is lost when somebody is killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from runs_app.core.work import lifecycle
from runs_app.features.spool import services
from runs_app.features.spool.services import import_spool
from runs_app.models import Evaluation
from tests import factories as make
from tests.unit.runs_app.features.spool.hosts import all_jobs, export, the_job, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs", "believed")]


class Killed(BaseException):
    """Stands in for SIGKILL: nothing catches it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def evaluations(count: int) -> list[Evaluation]:
    return [make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(count)]


def killed_at(
    time: int, function: Callable[..., Any], *, after: bool = False
) -> Callable[..., Any]:
    """The function, in whose call of that number the process dies."""
    calls = iter(range(1, 1000))

    def called(*arguments: Any, **named: Any) -> Any:
        if next(calls) != time:
            return function(*arguments, **named)
        if after:
            function(*arguments, **named)
        raise Killed

    return called


def assert_done_once(rows: list[Evaluation]) -> None:
    for row in rows:
        row.refresh_from_db()
        kinds = list(row.events.values_list("kind", flat=True))
        assert (row.status, row.attempt, row.verdict) == ("FINISHED", 1, "CORRECT")
        assert kinds.count("finished") == 1


def test_a_job_that_cannot_be_read_is_set_aside_and_queued_again(folder: Path) -> None:
    texts = [b"{", b"[" * 100_000, b"\xff", b'{"kind": "evaluation"}']
    good, *bad = evaluations(1 + len(texts))
    export(folder)
    paths = [folder / "jobs" / f"{the_job(folder, row).name}.json" for row in bad]
    work(folder, good)
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    done = import_spool(folder=folder, now=make.NOW)
    assert (done.new, done.unfinished) == (1, 0)
    for path, text, row in zip(paths, texts, bad, strict=True):
        aside = folder / "aside" / path.name
        assert aside.read_bytes() == text
        (said,) = (said for said in done.refused if said.startswith(path.name))
        assert said.endswith(f"; set aside as {aside}; the job is in the queue again")
        row.refresh_from_db()
        assert (row.status, row.attempt, row.reason) == ("QUEUED", 2, "taken back from its spool")
    assert import_spool(folder=folder, now=make.NOW).refused == []
    assert export(folder) == len(bad)
    work(folder, bad[0])
    assert import_spool(folder=folder, now=make.NOW).new == 1


def test_a_result_that_cannot_be_read_is_set_aside_and_can_be_made_again(folder: Path) -> None:
    bad, good, unread = evaluations(3)
    export(folder)
    work(folder, unread)  # its result counts though its job can no longer be read
    (folder / "jobs" / f"{the_job(folder, unread).name}.json").write_bytes(b"")
    path = work(folder, bad)
    whole = path.read_bytes()
    path.write_bytes(b"\x00\x00\n" + whole)
    work(folder, good)
    with pytest.raises(CommandError, match="1 job"):
        call_command("spool", "import", str(folder))
    assert (folder / "aside" / path.name).read_bytes() == b"\x00\x00\n" + whole
    assert path.read_bytes() == b""
    done = import_spool(folder=folder, now=make.NOW)
    assert (done.unfinished, done.refused) == (1, [])
    path.write_bytes(whole)
    assert import_spool(folder=folder, now=make.NOW).new == 1
    assert_done_once([bad, good, unread])


def test_a_file_that_is_no_job_is_named_and_moved(folder: Path) -> None:
    (row,) = evaluations(1)
    export(folder)
    work(folder, row)
    (folder / "jobs" / "notes.json").write_text("mine")
    (folder / "jobs" / "folder-1.json").mkdir()
    done = import_spool(folder=folder, now=make.NOW)
    assert done.new == 1
    moved, kept = sorted(done.refused, reverse=True)
    assert moved.startswith("notes: is not a job's name, such as evaluation-ID-1; set aside as ")
    assert kept == "folder-1.json: cannot be set aside: Is a directory"


@pytest.mark.parametrize(
    ("module", "name", "point"),
    [
        pytest.param(os, "fsync", 1, id="before it is a spool"),
        pytest.param(os, "fsync", 3, id="in a job's file"),
        pytest.param(lifecycle, "hand_out", 2, id="between file and row"),
    ],
)
def test_an_export_that_is_killed_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, point: int
) -> None:
    rows = evaluations(3)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, killed_at(point, getattr(module, name)))
        with pytest.raises(Killed):
            export(folder)
    for job in all_jobs(folder):  # a host that is quick
        work(folder, next(row for row in rows if str(row.pk) == job.job_id))
    if point > 1:
        assert import_spool(folder=folder, now=make.NOW).new == 1
    export(folder)
    for row in rows:
        work(folder, row)
    assert import_spool(folder=folder, now=make.NOW).refused == []
    assert_done_once(rows)


@pytest.mark.parametrize("after", [False, True])
def test_an_import_that_is_killed_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    rows = evaluations(3)
    export(folder)
    for row in rows:
        work(folder, row)
    with monkeypatch.context() as patch:
        patch.setattr(services, "record_events", killed_at(2, services.record_events, after=after))
        with pytest.raises(Killed):
            import_spool(folder=folder, now=make.NOW)
    done = import_spool(folder=folder, now=make.NOW)
    assert (done.new, done.known) == ((1, 2) if after else (2, 1))
    assert_done_once(rows)

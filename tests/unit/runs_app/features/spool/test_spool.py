"""Jobs leave in a folder and come back, once, whatever is killed or unreadable on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from gpu_runner.data import codec
from gpu_runner.data.spool import SpoolFolder
from runs_app.core.messaging import orders
from runs_app.core.runners.reconcile import reconcile
from runs_app.core.work import lifecycle
from runs_app.features.spool import services
from runs_app.features.spool.services import SpoolError, import_spool, take_back
from runs_app.models import Device, Evaluation
from tests import factories as make
from tests.unit.runs_app.features.spool.hosts import all_jobs, export, the_job, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs", "believed")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def test_jobs_go_out_and_results_come_back_once(folder: Path) -> None:
    first, second = (make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(2))
    request = codec.encode(first.request())
    assert export(folder) == 2
    assert the_job(folder, first).request == request
    first.refresh_from_db()
    assert (first.status, first.events.last().kind) == ("RUNNING", "spooled")
    assert first.spool == SpoolFolder(folder).manifest().name
    page = Client().get(first.submission.get_absolute_url()).content.decode()
    assert f"In the spool {first.spool}, which another host is working on" in page
    assert f"spool {first.spool}" in Client().get("/queue/").content.decode()
    assert orders.waiting("cpu") == set()
    work(folder, first)
    done = import_spool(folder=folder, now=make.NOW)
    assert (done.new, done.known, done.unfinished, done.refused) == (1, 0, 1, [])
    first.refresh_from_db()
    assert (first.status, first.verdict, first.spool) == ("FINISHED", "CORRECT", "")
    work(folder, second)
    done = import_spool(folder=folder, now=make.NOW)
    assert (done.new, done.known, done.unfinished) == (1, 1, 0)
    events = first.events.count()
    assert import_spool(folder=folder, now=make.NOW).known == 2
    assert first.events.count() == events


def test_no_silence_calls_a_spooled_job_back(folder: Path) -> None:
    evaluation = make.make_evaluation()
    export(folder)
    later = make.NOW + timedelta(days=3)
    assert reconcile(now=later, listening_since=make.NOW) == 0
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("RUNNING", 1)


def test_what_was_lost_or_taken_back_counts_no_more_and_goes_out_again(folder: Path) -> None:
    lost = make.make_evaluation(source=f"{make.SOURCE}// lost")
    export(folder)
    work(folder, lost, kinds="started lost")
    assert import_spool(folder=folder, now=make.NOW).new == 1
    lost.refresh_from_db()
    assert (lost.status, lost.attempt) == ("QUEUED", 2)
    assert export(folder) == 1
    work(folder, lost)
    assert import_spool(folder=folder, now=make.NOW).new == 1
    evaluation = make.make_evaluation()
    export(folder)
    work(folder, evaluation)
    assert take_back(folder=folder, now=make.NOW) == 1
    evaluation.refresh_from_db()
    assert (evaluation.status, evaluation.attempt) == ("QUEUED", 2)
    assert import_spool(folder=folder, now=make.NOW).new == 0
    evaluation.refresh_from_db()
    assert evaluation.status == "QUEUED"


def test_results_of_what_was_not_handed_out_are_refused(folder: Path) -> None:
    """A folder cannot speak for jobs that it was not given, whoever wrote into it."""
    mine = make.make_evaluation()
    export(folder)
    other = make.make_evaluation(source=f"{make.SOURCE}// other")
    forged = codec.encode(the_job(folder, mine))
    forged |= {"job_id": str(other.pk)}
    path = folder / "jobs" / f"evaluation-{other.pk}-1.json"
    path.write_text(json.dumps(forged))
    work(folder, other)
    done = import_spool(folder=folder, now=make.NOW)
    assert done.refused == [f"evaluation-{other.pk}-1: it is not one of this spool's jobs"]
    other.refresh_from_db()
    assert other.status == "QUEUED"


def test_events_of_another_job_in_a_jobs_file_are_refused(folder: Path) -> None:
    one, other = (make.make_evaluation(source=f"{make.SOURCE}// {n}") for n in range(2))
    export(folder)
    lines = work(folder, other).read_text()
    SpoolFolder(folder).events_file(the_job(folder, one).name).write_text(lines)
    done = import_spool(folder=folder, now=make.NOW)
    assert done.new == 1
    assert "contains events from another job; the job is back in the queue" in done.refused[0]
    one.refresh_from_db()
    assert (one.status, one.attempt) == ("QUEUED", 2)
    assert "the results from its spool were refused: its file contains events from" in one.reason
    assert import_spool(folder=folder, now=make.NOW).refused == []  # told once


def test_a_result_that_is_refused_goes_back_to_waiting_until_its_attempts_are_used(
    folder: Path, settings: Any
) -> None:
    settings.MAX_ATTEMPTS = 2
    row = make.make_evaluation()
    for state, words in (("QUEUED", "the job is back in the queue"), ("FINISHED", "the last")):
        export(folder)
        path = work(folder, row)
        path.write_text(path.read_text().replace('"latency_ns": ', '"latency": '))
        done = import_spool(folder=folder, now=make.NOW)
        assert words in done.refused[0]
        assert done.unfinished == 0
        row.refresh_from_db()
        assert row.status == state
    assert row.verdict == "SYSTEM_ERROR"


def test_a_folder_with_other_things_and_other_devices_are_refused(
    tmp_path: Path, folder: Path
) -> None:
    for action in ("import", "cancel"):
        with pytest.raises(CommandError, match=r"has no spool\.json"):
            call_command("spool", action, str(tmp_path))
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(SpoolError, match="is neither empty nor a spool"):
        export(tmp_path)
    export(folder)
    with pytest.raises(CommandError, match="is a spool of cpu, not of nvidia-h200"):
        call_command("spool", "export", str(folder), "--device", make.make_device().slug)
    with pytest.raises(CommandError, match="there is no device 'gtx'; known: cpu"):
        call_command("spool", "export", str(folder), "--device", "gtx")
    with pytest.raises(CommandError, match="specify the device"):
        call_command("spool", "export", str(folder))
    new = ("--device", "nvidia-b200", "--new", "NVIDIA B200")  # that no runner announced
    call_command("spool", "export", str(tmp_path / "new"), *new)
    made = Device.objects.get(pk="nvidia-b200")
    assert (made.kind, made.name) == ("cuda", "NVIDIA B200")


class Killed(BaseException):
    """Stands in for SIGKILL: nothing catches it."""


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
        assert said.endswith(f"; set aside as {aside}; the job is back in the queue")
        row.refresh_from_db()
        assert (row.status, row.attempt, row.reason) == ("QUEUED", 2, "taken back from its spool")
    assert import_spool(folder=folder, now=make.NOW).refused == []
    assert export(folder) == len(bad)
    work(folder, bad[0])
    assert import_spool(folder=folder, now=make.NOW).new == 1


def test_a_result_that_cannot_be_read_is_set_aside_and_can_be_made_again(folder: Path) -> None:
    bad, good, unread = evaluations(3)
    export(folder)
    work(folder, unread)
    path = work(folder, bad)
    whole = path.read_bytes()
    path.write_bytes(b"\x00\x00\n" + whole)
    work(folder, good)
    # its result counts though its job can no longer be read
    (folder / "jobs" / f"{the_job(folder, unread).name}.json").write_bytes(b"")
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
    assert moved.startswith("notes: is not a job name such as evaluation-ID-1; set aside as ")
    assert kept == "folder-1.json: cannot be set aside: Is a directory"


@pytest.mark.parametrize(
    ("module", "name", "point"),
    [
        pytest.param(os, "fsync", 1, id="before it is a spool"),
        pytest.param(os, "fsync", 3, id="in a job's file"),
        pytest.param(lifecycle, "give_to_spool", 2, id="between file and row"),
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

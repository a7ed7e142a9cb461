"""Jobs leave in a folder and come back, whatever is killed on the way, and once."""

from __future__ import annotations

import json
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
    assert "holds events of another job; the job is in the queue again" in done.refused[0]
    one.refresh_from_db()
    assert (one.status, one.attempt) == ("QUEUED", 2)
    assert "the results from its spool were refused: its file holds events of" in one.reason
    assert import_spool(folder=folder, now=make.NOW).refused == []  # told once


def test_a_result_that_is_refused_goes_back_to_waiting_until_its_attempts_are_used(
    folder: Path, settings: Any
) -> None:
    settings.MAX_ATTEMPTS = 2
    row = make.make_evaluation()
    for state, words in (("QUEUED", "the job is in the queue again"), ("FINISHED", "the last")):
        export(folder)
        path = work(folder, row)
        path.write_text(path.read_text().replace('"latency_ns": ', '"latency": '))
        done = import_spool(folder=folder, now=make.NOW)
        assert words in done.refused[0]
        assert done.unfinished == 0
        row.refresh_from_db()
        assert row.status == state
    assert row.verdict == "SYSTEM_ERROR"


def test_the_most_urgent_go_first_and_more_can_follow(folder: Path) -> None:
    idle = make.make_evaluation(source=f"{make.SOURCE}// idle")
    Evaluation.objects.filter(pk=idle.pk).update(background=True)
    person = make.make_evaluation(source=f"{make.SOURCE}// person")
    assert export(folder, most=1) == 1
    assert [job.job_id for job in all_jobs(folder)] == [str(person.pk)]
    assert export(folder) == 1


def test_a_folder_with_other_things_and_other_devices_are_refused(
    tmp_path: Path, folder: Path
) -> None:
    for action in ("import", "cancel"):
        with pytest.raises(CommandError, match=r"holds no spool\.json"):
            call_command("spool", action, str(tmp_path))
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(SpoolError, match="is not empty, and is not a spool"):
        export(tmp_path)
    export(folder)
    with pytest.raises(CommandError, match="is a spool of cpu, not of nvidia-h200"):
        call_command("spool", "export", str(folder), "--device", make.make_device().slug)
    with pytest.raises(CommandError, match="there is no device 'gtx'; known: cpu"):
        call_command("spool", "export", str(folder), "--device", "gtx")
    with pytest.raises(CommandError, match="name the device"):
        call_command("spool", "export", str(folder))
    new = ("--device", "nvidia-b200", "--new", "NVIDIA B200")  # that no runner announced
    call_command("spool", "export", str(tmp_path / "new"), *new)
    made = Device.objects.get(pk="nvidia-b200")
    assert (made.kind, made.name) == ("cuda", "NVIDIA B200")

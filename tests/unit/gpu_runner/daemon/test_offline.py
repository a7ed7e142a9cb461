"""A host that reaches no site works through a folder of jobs; nothing is lost when it is killed."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.daemon.jobs import JOBS, EvaluationJob
from gpu_runner.daemon.slot import SOME_LEFT
from gpu_runner.daemon.work import work as work_on
from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.order import Order
from gpu_runner.data.spool import Manifest, SpoolFolder
from tests.unit.gpu_runner.daemon.running import FORK, make_request, supervise

MANIFEST = Manifest(name="s1", device="cpu", device_kind="cpu")


def job(job_id: str, source: str = "void f() {}", timeout_s: int = 60) -> Order:
    return Order(
        kind=EvaluationRequest.KIND,
        job_id=job_id,
        attempt=1,
        timeout_s=timeout_s,
        request=codec.encode(make_request(job_id, source)),
    )


@pytest.fixture
def spool(tmp_path: Path) -> SpoolFolder:
    folder = SpoolFolder(tmp_path / "spool")
    folder.begin(MANIFEST)
    return folder


def begin(spool: SpoolFolder, cache: Path) -> ForkProcess:
    """A worker in a process of its own: it answers signals, and sweeps its children up."""
    config = DaemonConfig(
        spool=spool.folder, cache_folder=cache, ready=False, slots=1, drain_timeout_s=60
    )

    def serve() -> None:
        logging.disable(logging.NOTSET)  # an earlier test's command has no use for it
        logging.getLogger().handlers.clear()  # an earlier test's, with its standard error
        JOBS[EvaluationRequest.KIND] = EvaluationJob(supervise)
        os._exit(work_on(config, probe_jail=lambda: ""))

    process = FORK.Process(target=serve)
    process.start()
    return process


def work(spool: SpoolFolder, cache: Path, timeout_s: float = 90) -> int | None:
    process = begin(spool, cache)
    process.join(timeout_s)
    return process.exitcode


def kinds(spool: SpoolFolder, wanted: Order) -> list[str]:
    return [event.kind.value for event in spool.events(wanted.name)]


def wait_for(path: Path, words: bytes, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not (path.exists() and words in path.read_bytes()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.02)


def test_every_job_is_done_once_and_told_as_through_a_queue(
    spool: SpoolFolder, tmp_path: Path
) -> None:
    first, fails, dies = job("a"), job("b", "raise"), job("c", "sleep 60", timeout_s=1)
    for each in (first, fails, dies):
        spool.put(each)
    assert work(spool, tmp_path / "cache") == 0
    assert kinds(spool, first) == ["started", "stage", "stage", "finished"]
    assert [event.seq for event in spool.events(first.name)] == [1, 2, 3, 4]
    assert spool.events(fails.name)[-1].payload["result"]["verdict"] == "SYSTEM_ERROR"
    late = spool.events(dies.name)[-1].payload["result"]
    assert late["verdict"] == "SYSTEM_ERROR"
    assert "longer than allowed" in late["reason"]
    before = spool.events_file(first.name).stat().st_mtime_ns
    assert work(spool, tmp_path / "cache") == 0
    assert spool.events_file(first.name).stat().st_mtime_ns == before


def test_a_worker_that_is_killed_leaves_a_job_that_the_next_begins_again(
    spool: SpoolFolder, tmp_path: Path
) -> None:
    waits = job("a", "sleep 60")
    spool.put(waits)
    worker = begin(spool, tmp_path / "cache")
    wait_for(spool.events_file(waits.name), b'"stage"')
    worker.kill()
    worker.join()
    assert spool.events(waits.name) == []
    spool.put(job("a"))  # the same, but that it ends by itself
    assert work(spool, tmp_path / "cache") == 0
    assert kinds(spool, waits) == ["started", "stage", "stage", "finished"]


def test_what_is_no_spool_or_of_another_device_is_refused(tmp_path: Path) -> None:
    config = DaemonConfig(spool=tmp_path, cache_folder=tmp_path / "cache", ready=False)
    with pytest.raises(DataError, match=r"has no spool\.json"):
        work_on(config)
    SpoolFolder(tmp_path).begin(replace(MANIFEST, device="nvidia-h100"))
    with pytest.raises(DataError, match="its jobs are for nvidia-h100; this host has cpu"):
        work_on(config)
    (tmp_path / "spool.json").write_text(
        '{"format": 2, "name": "a", "device": "cpu", "device_kind": "cpu"}'
    )
    with pytest.raises(DataError, match="must be 1, not 2"):
        work_on(config)


def test_what_cannot_be_read_is_named_and_all_others_are_done(
    spool: SpoolFolder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    torn, foreign, last = job("a"), job("b"), job("c")
    for each in (torn, foreign, last):
        spool.put(each)
    (spool.folder / "jobs" / "evaluation-a-1.json").write_text("{")
    spool.events_file(foreign.name).write_bytes(b"\x00\n")
    assert work(spool, tmp_path / "cache") == SOME_LEFT
    assert "left out: evaluation-a-1.json: is not JSON" in capfd.readouterr().err
    assert (spool.folder / "aside" / "evaluation-b-1.jsonl").read_bytes() == b"\x00\n"
    for each in (foreign, last):
        assert kinds(spool, each) == ["started", "stage", "stage", "finished"]
    path = spool.events_file(last.name)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])  # a torn line is no end
    assert spool.events(last.name) == []
    path.write_bytes(b"{}\n" + whole)
    with pytest.raises(DataError, match=r"evaluation-c-1\.jsonl, line 1: is not an event"):
        spool.events(last.name)

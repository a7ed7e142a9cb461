"""A whole daemon against a real Redis: what it reports, how it stops, what survives its death."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from gpu_runner.daemon import lineage
from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.daemon.heartbeat import Heartbeat
from gpu_runner.daemon.sources import redis_source
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.order import Word
from tests.conftest import RedisServer
from tests.unit.gpu_runner.daemon.conftest import StartDaemon
from tests.unit.gpu_runner.daemon.running import (
    RunningDaemon,
    StandInSite,
    alive,
    descendants,
    login,
    make_request,
    read_events,
    supervise,
)


def kinds(events: list[Event]) -> list[str]:
    return [event.kind.value for event in events]


def grows(path: Path) -> bool:
    """Whether the process that appends to `path` still lives."""
    size = path.stat().st_size
    time.sleep(0.4)
    return path.stat().st_size > size


def test_reports_every_step_in_order_and_numbered(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(name="box", slots=2)
    daemon.enqueue(make_request())
    finished = daemon.wait_for(EventKind.FINISHED)
    events = daemon.events()
    assert kinds(events) == ["started", "stage", "stage", "finished"]
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert finished.payload["result"]["verdict"] == "COMPILE_ERROR"
    daemon.enqueue(make_request("e2", "raise"))
    result = daemon.wait_for(EventKind.FINISHED, "e2").payload["result"]
    assert result["verdict"] == "SYSTEM_ERROR"
    assert "the oracle is gone" in result["reason"]
    assert "RuntimeError" in result["log"]
    deadline = time.monotonic() + 60  # what was sent goes from the outbox a moment later
    while list((daemon.config.cache_folder / "outbox").rglob("*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    state = daemon.wait_for_state("ready")
    assert (state["name"], state["device"], state["device_kind"]) == ("box", "cpu", "cpu")
    assert (state["builds"], state["jail"]) == (2, True)
    assert re.fullmatch(r"g\+\+ \d+\.\d+(\.\d+)?", state["compiler"])
    assert state["architecture"].startswith(platform.machine())


def test_sigterm_finishes_the_current_job_and_takes_no_other(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    daemon.enqueue(make_request("e1", "sleep 2"))
    daemon.enqueue(make_request("e2"))
    daemon.wait_for(EventKind.STAGE)
    os.kill(daemon.process.pid or 0, signal.SIGTERM)
    daemon.wait_for_state("draining")
    daemon.stop(signal.SIGCONT)
    assert daemon.process.exitcode == 0
    assert kinds(daemon.events("e1"))[-1] == "finished"
    assert daemon.events("e2") == []
    assert daemon.queue.count == 1
    assert daemon.events("")[-1].payload["state"] == "stopped"


@pytest.mark.parametrize("impatience", ["second signal", "deadline"])
def test_a_hard_stop_loses_the_job_with_a_reason(
    start_daemon: StartDaemon, impatience: str
) -> None:
    daemon = start_daemon(drain_timeout_s=0.5 if impatience == "deadline" else 60.0)
    daemon.enqueue(make_request(source="sleep 60"))
    daemon.wait_for(EventKind.STAGE)
    os.kill(daemon.process.pid or 0, signal.SIGTERM)
    if impatience == "second signal":
        daemon.wait_for_state("draining")
        os.kill(daemon.process.pid or 0, signal.SIGTERM)
    daemon.stop(signal.SIGCONT)
    lost = daemon.events()[-1]
    assert lost.kind is EventKind.LOST
    assert lost.seq == 3
    assert lost.payload["reason"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("who", ["work-horse", "slot"])
def test_who_dies_or_stands_still_is_lost_once_and_its_children_die(
    start_daemon: StartDaemon,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    who: str,
    how: signal.Signals,
) -> None:
    monkeypatch.setattr(lineage, "STANDSTILL_S", 1.0)
    daemon = start_daemon()
    leak = tmp_path / "leak"
    daemon.enqueue(make_request(source=f"leak {leak}"))
    while not leak.exists():
        time.sleep(0.05)
    [slot] = [pid for pid in descendants(daemon.process.pid or 0) if descendants(pid)][:1]
    [horse] = [int(pid) for pid in Path(f"/proc/{slot}/task/{slot}/children").read_text().split()]
    os.kill(slot if who == "slot" else horse, how)
    reason = daemon.wait_for(EventKind.LOST, timeout_s=10).payload["reason"]
    assert how is signal.SIGSTOP or {"slot": "slot", "work-horse": "SIGKILL"}[who] in reason
    time.sleep(0.7)
    assert not grows(leak)
    daemon.enqueue(make_request("e2"))
    daemon.wait_for(EventKind.FINISHED, "e2")
    assert kinds(daemon.events("e1")).count("lost") == 1


def test_an_admins_wish_holds_work_back_until_it_is_taken_back(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    """It finishes what it does, takes nothing more, and works again afterwards."""
    daemon = start_daemon(name="box")
    daemon.wait_for_state("ready")
    daemon.enqueue(make_request(source=f"until {tmp_path / 'held'}"))
    daemon.wait_for(EventKind.STAGE)
    daemon.site.say("box", Word(hold="told by an admin to drain: the fan is loud"))
    assert "the fan is loud" in daemon.wait_for_state("draining")["reason"]
    (tmp_path / "held").touch()
    daemon.wait_for(EventKind.FINISHED)
    daemon.enqueue(make_request("e2"))
    time.sleep(1.5)
    assert kinds(daemon.events("e2")) == []
    daemon.site.say("box", Word())
    daemon.wait_for(EventKind.FINISHED, "e2")
    assert daemon.wait_for_state("ready")["reason"] != "the fan is loud"


def test_a_job_that_is_on_its_way_at_a_stop_is_not_lost(start_daemon: StartDaemon) -> None:
    """Its name has left the queue, so nobody else can do it."""
    daemon = start_daemon(name="box")
    daemon.site.answers = False
    daemon.enqueue(make_request())
    while not daemon.site.asks:
        time.sleep(0.05)
    daemon.site.say("box", Word(hold="told by an admin to drain"))
    daemon.wait_for_state("draining")
    time.sleep(0.5)
    daemon.site.answer(daemon.site.asks[0])
    daemon.wait_for(EventKind.FINISHED)


def test_a_job_that_the_site_takes_back_ends_at_once(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    daemon = start_daemon(name="box")
    leak = tmp_path / "leak"
    daemon.enqueue(make_request(source=f"leak {leak}"))
    daemon.wait_for(EventKind.STAGE)
    daemon.site.say("box", Word(dropped=("evaluation-e1-1", "evaluation-other-1")))
    assert "taken the job back" in daemon.wait_for(EventKind.LOST, timeout_s=10).payload["reason"]
    time.sleep(0.7)
    assert not grows(leak)
    daemon.enqueue(make_request("e2"))
    daemon.wait_for(EventKind.FINISHED, "e2")


def test_an_answer_that_was_lost_is_asked_for_again(
    start_daemon: StartDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site was killed after it had handed the job over: the same ticket, the same job."""
    monkeypatch.setattr(redis_source, "_ANSWER_S", 1.0)  # the daemon is a fork
    daemon = start_daemon()
    daemon.wait_for_state("ready")
    daemon.site.close()
    daemon.site = StandInSite(daemon.url, answers=False)
    daemon.enqueue(make_request())
    while not daemon.site.asks:
        time.sleep(0.05)
    daemon.site.answers = True
    daemon.wait_for(EventKind.FINISHED)
    assert len({ask.ticket for ask in daemon.site.asks}) == 1
    assert len(daemon.site.asks) > 1


def test_nothing_lives_on_when_the_daemon_is_killed_and_the_next_is_another(
    start_daemon: StartDaemon,
) -> None:
    daemon = start_daemon()
    before = daemon.wait_for_state("ready")["boot_id"]
    daemon.enqueue(make_request(source="sleep 60"))
    daemon.wait_for(EventKind.STAGE)
    deadline = time.monotonic() + 60
    # the slot, its work-horse, the slot for builds, and who reads sensors
    while len(family := descendants(daemon.process.pid or 0)) < 4:
        assert time.monotonic() < deadline, family
        time.sleep(0.05)
    daemon.stop(signal.SIGKILL)
    time.sleep(0.5)
    assert [pid for pid in family if alive(pid)] == []
    second = start_daemon()
    deadline = time.monotonic() + 60
    while second.events("")[-1].payload["boot_id"] == before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_without_a_jail_no_job_is_taken(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(fault="bwrap is not installed")
    daemon.enqueue(make_request())
    state = daemon.wait_for_state("unfit")
    assert "bwrap is not installed" in state["reason"]
    assert state["jail"] is False
    time.sleep(1)
    assert daemon.queue.count == 1
    daemon.stop()


def test_a_host_may_be_told_to_work_without_a_jail(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(fault="bwrap is not installed", allow_unjailed=True)
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)
    assert "without a jail" in daemon.wait_for_state("ready")["reason"]


def test_a_broken_device_takes_no_job_until_it_works(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    mark = tmp_path / "cache" / "health" / "cpu-0-mark.json"
    mark.parent.mkdir(parents=True)
    mark.write_text('{"unfit": "a known kernel gave 3 wrong results"}')
    daemon = start_daemon(recheck_s=1.5)
    daemon.enqueue(make_request())
    state = daemon.wait_for_state("unfit")
    assert state["reason"] == "takes no jobs: a known kernel gave 3 wrong results"
    assert daemon.queue.count == 1
    daemon.wait_for_state("ready")
    daemon.wait_for(EventKind.FINISHED)
    assert not mark.exists()


def test_a_device_that_breaks_during_a_job_is_looked_at_after_it(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    daemon = start_daemon(recheck_s=60.0)
    daemon.enqueue(make_request("e1", "sleep 1.5"))
    daemon.wait_for(EventKind.STAGE)
    mark = tmp_path / "cache" / "health" / "cpu-0-mark.json"
    mark.parent.mkdir(parents=True)
    mark.write_text('{"unfit": "processes 7 still hold the GPU"}')
    daemon.wait_for_state("unfit")
    daemon.wait_for(EventKind.FINISHED)
    daemon.wait_for_state("ready")
    assert not mark.exists()
    daemon.enqueue(make_request("e2"))
    daemon.wait_for(EventKind.FINISHED, "e2")


def test_a_result_survives_an_absence_of_redis(redis_server: RedisServer, tmp_path: Path) -> None:
    config = DaemonConfig(
        redis_url=redis_server.url, cache_folder=tmp_path / "cache", heartbeat_s=0.3
    )
    daemon = RunningDaemon(config, supervise)
    try:
        daemon.enqueue(make_request(source="sleep 1"))
        daemon.wait_for(EventKind.STAGE)
        redis_server.stop()
        time.sleep(2.5)
        redis_server.start()
        login(redis_server.url)
        connection = redis.Redis.from_url(redis_server.url)
        daemon.connection = connection
        daemon.wait_for(EventKind.FINISHED)
        daemon.enqueue(make_request("e2"))
        daemon.wait_for(EventKind.FINISHED, "e2")
        assert "lost" not in kinds(read_events(connection, "e1"))
        daemon.stop()
    finally:
        daemon.kill()


def test_a_daemon_that_fails_ends_and_says_why(
    start_daemon: StartDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its slots are processes for which Python would wait before it prints a traceback."""
    beat, beats = Heartbeat.beat, []

    def fail_later(self: Heartbeat, state: str, reason: str, *, jail: bool) -> None:
        beats.append(state)
        if len(beats) > 3:
            raise RuntimeError("a fault of ours")
        beat(self, state, reason, jail=jail)

    monkeypatch.setattr(Heartbeat, "beat", fail_later)
    daemon = start_daemon(slots=2)
    daemon.process.join(60)
    assert daemon.process.exitcode == 1


PRELUDE = "import os, sys, time\nfrom gpu_runner.daemon import lineage\nlineage.adopt_orphans()\n"


def run(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.split()


def test_the_dead_are_reaped_but_not_counted_and_others_are_kept() -> None:
    code = (
        "if os.fork() == 0: os._exit(0)\n"
        "kept = os.fork()\n"
        "if kept == 0: time.sleep(60)\n"
        "time.sleep(0.2)\n"
        "print(lineage.sweep(keep=[kept]), list(lineage.children()) == [kept], lineage.sweep())\n"
    )
    assert run(code) == ["0", "True", "1"]

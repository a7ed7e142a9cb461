"""A runner heeds what admins want of it, does nothing else, and tells what sensors say."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rq import Callback, Queue

from gpu_runner.daemon.child import Sensors
from gpu_runner.daemon.sources.contract import Away
from gpu_runner.daemon.work import Wishes
from gpu_runner.data import codec, mailbox
from gpu_runner.data.event import EventKind
from gpu_runner.data.order import Word
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device_log import cpu_sensors
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.unit.gpu_runner.daemon.conftest import StartDaemon
from tests.unit.gpu_runner.daemon.running import make_order, make_request


class FakeSource:
    """Says something, or nothing at all."""

    def __init__(self) -> None:
        self.said = Word()
        self.away = False

    def word(self, runner: str) -> Word:
        assert runner == "host-1"
        if self.away:
            raise Away("gone")
        return self.said


class FakeSlots:
    """Remembers what was dropped."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def drop(self, names: tuple[str, ...]) -> None:
        self.dropped += names


def test_the_site_is_asked_once_a_second_and_what_it_said_holds_while_it_is_away() -> None:
    now, source, slots = [0.0], FakeSource(), FakeSlots()
    wishes = Wishes(source, "host-1", clock=lambda: now[0])  # type: ignore[arg-type]

    def hold() -> str:
        return wishes.hold(slots)  # type: ignore[arg-type]

    assert hold() == ""
    source.said = Word(hold="told by an admin to drain: fan", dropped=("check-a-1",))
    now[0] = 0.5
    assert (hold(), slots.dropped) == ("", [])
    now[0] = 1.0
    assert (hold(), slots.dropped) == ("told by an admin to drain: fan", ["check-a-1"])
    source.away = True
    now[0] = 3.0
    assert hold() == "told by an admin to drain: fan"
    source.away, source.said = False, Word()
    now[0] = 5.0
    assert hold() == ""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_a_processor_is_read_as_far_as_its_host_tells(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    assert cpu_sensors(tmp_path, cpuinfo) == {}
    cpuinfo.write_text("cpu MHz\t\t: 2000.0\ncpu MHz\t\t: 3000.0\n")
    assert cpu_sensors(tmp_path, cpuinfo) == {"clock_mhz": 2500.0}
    write(tmp_path / "class/hwmon/hwmon0/name", "nvme")
    write(tmp_path / "class/hwmon/hwmon0/temp1_input", "99000")
    write(tmp_path / "class/hwmon/hwmon1/name", "k10temp")
    write(tmp_path / "class/hwmon/hwmon1/temp1_input", "61500")
    write(tmp_path / "class/hwmon/hwmon1/temp2_input", "broken")
    write(tmp_path / "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400000")
    assert cpu_sensors(tmp_path, cpuinfo) == {"temperature_c": 61.5, "clock_mhz": 3400.0}


def test_a_child_reads_and_only_what_is_fresh_counts(tmp_path: Path) -> None:
    config = SupervisorConfig(
        kind=DeviceKind.CPU, index=0, device="cpu", cache_folder=tmp_path, allow_unjailed=True
    )
    watching = Sensors(config, read=lambda kind, index: {"power_w": 7.0}, period_s=0.01)
    assert watching.latest() == {}
    watching.keep()
    try:
        deadline = time.monotonic() + 60
        while not watching.latest() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert watching.latest() == {"power_w": 7.0}
        assert len(watching.pids) == 1
    finally:
        watching.end()
    assert watching.pids == []


def test_what_the_site_does_not_hand_over_is_not_done_and_ends_no_slot(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    """Names, jobs of RQ with functions, callbacks and pickles, and answers that make no sense."""
    daemon = start_daemon()
    target = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (target,)

    daemon.queue.push_job_id(mailbox.rq_id("cpu", "evaluation-e9-1"))
    daemon.queue.push_job_id("nonsense")
    daemon.queue.enqueue("os.system", f"touch {target}")
    daemon.queue.enqueue("os.getcwd", on_success=Callback("os.getcwd"))
    Queue("device-cpu", connection=daemon.connection).enqueue("os.getcwd", Bomb())
    for number, answer in enumerate(("{", "[]", '{"kind": "evaluation"}', '"x"')):
        daemon.site.orders[f"evaluation-bad-{number}"] = answer  # type: ignore[assignment]
        daemon.queue.push_job_id(mailbox.rq_id("cpu", f"evaluation-bad-{number}"))
    order = make_order(make_request("new"))
    request = {**order.request, "colour": "blue"}
    daemon.site.put(codec.decode(type(order), {**codec.encode(order), "request": request}))
    daemon.enqueue(make_request())
    daemon.wait_for(EventKind.FINISHED)
    assert "colour" in daemon.wait_for(EventKind.LOST, "new").payload["reason"]
    assert not target.exists()
    assert daemon.events("e9") == []
    assert [ask.job for ask in daemon.site.asks][-1] == "evaluation-e1-1"

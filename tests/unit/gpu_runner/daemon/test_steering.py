"""A runner heeds what admins want of it, and tells what its device's sensors say."""

from __future__ import annotations

import time
from pathlib import Path

import redis

from gpu_runner.daemon.sensors import Sensors
from gpu_runner.daemon.steering import Steering
from gpu_runner.data.event import STEERING
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device import sensors
from gpu_runner.supervisor.host.config import SupervisorConfig


class FakeRedis:
    """A hash, or no Redis at all."""

    def __init__(self) -> None:
        self.said: bytes | None = None
        self.away = False

    def hget(self, key: str, name: str) -> bytes | None:
        assert (key, name) == (STEERING, "host-1")
        if self.away:
            raise redis.ConnectionError("gone")
        return self.said


def test_the_wish_is_read_once_a_period_and_kept_while_redis_is_away() -> None:
    now, connection = [0.0], FakeRedis()
    steering = Steering(connection, "host-1", 5.0, clock=lambda: now[0])  # type: ignore[arg-type]
    assert steering.reason() == ""
    connection.said = b"told by an admin to drain: fan"
    now[0] = 4.0
    assert steering.reason() == ""
    now[0] = 5.0
    assert steering.reason() == "told by an admin to drain: fan"
    connection.away = True
    now[0] = 11.0
    assert steering.reason() == "told by an admin to drain: fan"
    connection.away, connection.said = False, None
    now[0] = 17.0
    assert steering.reason() == ""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_a_processor_is_read_as_far_as_its_host_tells(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    assert sensors.cpu(tmp_path, cpuinfo) == {}
    cpuinfo.write_text("cpu MHz\t\t: 2000.0\ncpu MHz\t\t: 3000.0\n")
    assert sensors.cpu(tmp_path, cpuinfo) == {"clock_mhz": 2500.0}
    write(tmp_path / "class/hwmon/hwmon0/name", "nvme")
    write(tmp_path / "class/hwmon/hwmon0/temp1_input", "99000")
    write(tmp_path / "class/hwmon/hwmon1/name", "k10temp")
    write(tmp_path / "class/hwmon/hwmon1/temp1_input", "61500")
    write(tmp_path / "class/hwmon/hwmon1/temp2_input", "broken")
    write(tmp_path / "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3400000")
    assert sensors.cpu(tmp_path, cpuinfo) == {"temperature_c": 61.5, "clock_mhz": 3400.0}


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

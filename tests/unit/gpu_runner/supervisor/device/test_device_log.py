"""Blocks of a measurement say when clocks were lowered, and by what."""

from __future__ import annotations

import pytest

from gpu_runner.data.environment import DeviceState
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device_log import DeviceLog, Reading
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError

CUDA = SupervisorConfig(kind=DeviceKind.CUDA, device="nvidia-test")


def logged(*readings: Reading) -> DeviceLog:
    left = list(readings)
    log = DeviceLog(CUDA, lambda _: left.pop(0))
    with log.block("process 1"):
        pass
    return log


@pytest.mark.parametrize(
    ("reasons", "throttled", "capped"),
    [
        ((), False, False),
        (("idle", "application clocks"), False, False),
        (("software power cap",), False, True),
        (("hardware slowdown",), True, False),
        (("hardware thermal slowdown", "software power cap"), True, True),
        (("hardware power brake",), True, False),
    ],
)
def test_reasons_are_told_apart(reasons: tuple[str, ...], throttled: bool, capped: bool) -> None:
    before = Reading(DeviceState(sm_mhz=1980), {})
    after = Reading(DeviceState(sm_mhz=1200, throttle_reasons=reasons), {})
    [block] = logged(before, after).blocks
    assert (block.throttled, block.capped) == (throttled, capped)
    assert (block.before.sm_mhz, block.after.sm_mhz) == (1980, 1200)


def test_counters_tell_of_lowered_clocks_in_between_and_of_stolen_time() -> None:
    before = {"thermal_ns": 5e9, "power_ns": 1e9, "cpu_time": 100.0, "steal_time": 10.0}
    after = {"thermal_ns": 6e9, "power_ns": 1e9, "cpu_time": 300.0, "steal_time": 20.0}
    [block] = logged(Reading(DeviceState(), before), Reading(DeviceState(), after)).blocks
    assert (block.name, block.throttled, block.capped) == ("process 1", True, False)
    assert block.steal_share == 0.05


def test_a_gpu_that_cannot_be_read_and_a_block_that_fails_are_logged() -> None:
    def fail(_: SupervisorConfig) -> Reading:
        raise NvmlError("no NVIDIA driver on this host")

    log = DeviceLog(CUDA, fail)
    with pytest.raises(RuntimeError), log.block("process 1"):
        raise RuntimeError
    assert log.blocks[0].after == DeviceState(unknown="no NVIDIA driver on this host")

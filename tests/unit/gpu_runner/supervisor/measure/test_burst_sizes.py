"""How many calls are released together."""

from __future__ import annotations

import random

import pytest

from gpu_runner.data.integrity import Burst
from gpu_runner.data.protocol import MOST_BURST_CALLS
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.device.device import DeviceError
from gpu_runner.supervisor.host import nvml
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.burst_sizes import (
    MOST_ARGUMENTS,
    affordable,
    cut_short,
    draw_sizes,
    most_calls,
    room_bytes,
)
from gpu_runner.supervisor.oracle.client import Description, OutputSpec

GIB = 1 << 30


def description(nbytes: int, values: int = 0) -> Description:
    """A call with one output of so many bytes, and so many numbers."""
    shape = (nbytes // 4,)
    output = OutputSpec(name="C", dtype="float32", shape=shape, strides=(1,), nbytes=nbytes)
    numbers = [{"name": f"n{i}", "kind": "value", "value": i} for i in range(values)]
    return Description((*numbers,), (output,))


def test_bursts_have_at_least_half_of_the_most_calls_and_take_five_milliseconds() -> None:
    for most in (1, 2, 3, 8, 16, 64):
        for seed in range(5):
            sizes = draw_sizes(most, 4, random.Random(seed))
            assert len(sizes) == 4
            assert most // 2 <= min(sizes) <= max(sizes) <= most
            assert draw_sizes(most, 0, random.Random(seed)) == []
    for time_ns, calls in ((50e3, 64), (100e3, 50), (1e6, 5), (20e6, 1), (5e-324, 64)):
        assert affordable(64, [3 * time_ns, time_ns]) == calls
    assert affordable(64, []) == 64


def test_whoever_rests_at_first_is_asked_again() -> None:
    cut, whole = [Burst(calls=1, held_ns=9e6)], [Burst(calls=33, held_ns=2e6)]
    assert cut_short(cut, 64, [9e6, 50e3])
    assert not cut_short(cut, 64, [9e6, 9e6])
    assert not cut_short([*cut, *whole], 64, [9e6, 50e3])
    assert not cut_short([], 64, [50e3])


def test_bursts_are_as_large_as_memory_and_socket_allow() -> None:
    assert most_calls(description(4096), DeviceKind.CUDA, GIB) == MOST_BURST_CALLS[DeviceKind.CUDA]
    assert most_calls(description(4096), DeviceKind.CPU, 0) == 1  # none are made there
    assert most_calls(description(GIB // 4), DeviceKind.CUDA, 2 * GIB) in (7, 8)
    assert most_calls(description(4 * GIB), DeviceKind.CUDA, GIB) == 1
    assert most_calls(description(4096, values=255), DeviceKind.CUDA, GIB) == MOST_ARGUMENTS // 256


def test_the_memory_of_a_gpu_decides_how_much_a_burst_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml, "memory_total", {0: 80 * GIB, 1: 24 * GIB}.__getitem__)
    configs = [SupervisorConfig(kind=DeviceKind.CUDA, device="test", index=i) for i in (0, 1)]
    assert [room_bytes(config) for config in configs] == [10 * GIB, 3 * GIB]

    def gone(index: int) -> int:
        raise nvml.NvmlError("nvmlDeviceGetMemoryInfo failed with status 15")

    monkeypatch.setattr(nvml, "memory_total", gone)
    with pytest.raises(DeviceError, match="no CUDA device 1: nvmlDeviceGetMemoryInfo failed"):
        room_bytes(configs[1])

"""Contradicted claims are compared with fresh calibrations, each workload by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_runner.data.verdict import Abi, DeviceKind, Mode
from gpu_runner.supervisor import measuring
from gpu_runner.supervisor.measure.outside import EmptyKernelTime
from gpu_runner.supervisor.measuring import OwnClock
from gpu_runner.supervisor.runner.faults import RunnerUnfit

A, B = SimpleNamespace(name="a"), SimpleNamespace(name="b")


def calibrated(slope_ns: float) -> EmptyKernelTime:
    return EmptyKernelTime(intercept_ns=0.0, slope_ns=slope_ns, deviation_ns=0.0)


class Host:
    """Record, bench and calibration at once: a claim is raised below the slope that it needs."""

    def __init__(self, calibrations: Mapping[str, Sequence[float]], blind: bool = False) -> None:
        self._next: dict[str, Iterator[float]] = {n: iter(x) for n, x in calibrations.items()}
        self._is_blind = blind
        self.asked: list[list[str]] = []
        self.known: dict[str, EmptyKernelTime] = {}

    def of(self, _: Any, workloads: Sequence[Any], *, fresh: bool) -> dict[str, EmptyKernelTime]:
        self.asked.append([each.name for each in workloads])
        return {each.name: calibrated(next(self._next[each.name])) for each in workloads}

    def know_empty(self, times: Mapping[str, EmptyKernelTime]) -> None:
        self.known.update(times)

    def raised(self) -> set[str]:
        return {name for name, empty in self.known.items() if empty.slope_ns < 60}

    def blind(self) -> set[str]:
        return set(self.known) if self._is_blind else set()


def looked_again(host: Host, monkeypatch: pytest.MonkeyPatch, abi: Abi = Abi.TORCH) -> None:
    monkeypatch.setattr(measuring, "EmptyKernelCalibration", lambda *_: host)
    request: Any = SimpleNamespace(
        mode=Mode.RANKED, abi=abi, task=None, solution=SimpleNamespace(direction=None)
    )
    config: Any = SimpleNamespace(kind=DeviceKind.CUDA)
    both: Any = host
    target: Any = None
    clock = OwnClock(request, config, both, target, both)
    workloads: Any = [A, B]
    host.know_empty(host.of(None, workloads, fresh=False))
    clock.look_again(workloads)


def test_what_one_calibration_bears_out_is_not_calibrated_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen on a busy H200: 35, 66 and 74 us a call of the same empty torch extension."""
    host = Host({"a": [66, 35, 35], "b": [35, 35, 66]})
    looked_again(host, monkeypatch)
    assert host.asked == [["a", "b"], ["b"], ["b"]]
    assert host.raised() == set()


def test_a_claim_that_each_calibration_contradicts_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host({"a": [35, 36, 37], "b": [66]})
    looked_again(host, monkeypatch)
    assert host.asked[1:] == [["a"], ["a"]]
    assert host.raised() == {"a"}


def test_a_clock_that_stays_blind_is_the_hosts_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host({"a": [66, 66, 66], "b": [66, 66, 66]}, blind=True)
    with pytest.raises(RunnerUnfit):
        looked_again(host, monkeypatch)
    assert len(host.asked) == 3


def test_kernels_of_the_c_abi_share_a_calibration_through_several_workloads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host({"a": [66, 10], "b": [35, 66]})
    looked_again(host, monkeypatch, Abi.C)
    assert host.asked == [["a", "b"], ["a", "b"]]
    assert host.raised() == set()  # "a" keeps what has borne it out

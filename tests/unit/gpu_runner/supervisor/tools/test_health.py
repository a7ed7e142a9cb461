"""A device that was spoilt is found out, waited for, and not used until it works again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.device.gpu_state import Gpu
from gpu_runner.supervisor.device.toolchain import ToolchainError
from gpu_runner.supervisor.host import jail, living
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.tools import health
from gpu_runner.supervisor.tools.health import Instruments
from gpu_runner.supervisor.tools.probe import Probe, ProbeFailed, probe

MIB = 1 << 20
FINE = Gpu(memory_used=600 * MIB)
USED = Gpu(memory_used=0, memory_by_pid={7: 0, 8: 0})
FAST = Probe(time_ns=100e3, wrong=0)


class Scripted:
    """A device that answers from a list; the last answer stays."""

    def __init__(
        self,
        gpus: Sequence[Gpu | Exception] = (FINE,),
        probes: Sequence[Probe | Exception] = (FAST,),
        ours: Sequence[int] = (),
        orphans: Sequence[str] = (),
        builds: Sequence[Path | Exception] = (Path("support.so"),),
    ) -> None:
        self.waited_s = 0.0
        self.instruments = Instruments(
            gpu=self._answers(gpus),
            probe=self._answers(probes),
            ours=lambda pids: [pid for pid in pids if pid in ours],
            orphans=lambda: list(orphans),
            build=self._answers(builds),
            sleep=self._wait,
        )

    def _wait(self, seconds: float) -> None:
        self.waited_s += seconds

    @staticmethod
    def _answers(script: Sequence[Any]) -> Callable[[Any], Any]:
        left = list(script)

        def answer(_: object) -> Any:
            said = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(said, Exception):
                raise said
            return said

        return answer


@pytest.fixture
def config(tmp_path: Path) -> SupervisorConfig:
    return SupervisorConfig(kind=DeviceKind.CUDA, device="nvidia-test", cache_folder=tmp_path)


@pytest.fixture
def known(config: SupervisorConfig) -> SupervisorConfig:
    """A device that was healthy before."""
    device = Scripted()
    assert health.check(config, device.instruments) == ""
    assert device.waited_s == 0
    return config


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (Scripted(gpus=[NvmlError("nvmlDeviceGetHandleByIndex_v2 failed")]), "does not work"),
        (Scripted(gpus=[Gpu(memory_used=5000 * MIB)]), "5000 MiB"),
        (Scripted(gpus=[Gpu(memory_used=600 * MIB, uncorrected=1)]), "uncorrected"),
        (Scripted(gpus=[Gpu(memory_used=600 * MIB, remapped=2)]), "2 rows"),
        (Scripted(gpus=[Gpu(memory_used=0, damaged="rows wait")]), "rows wait"),
        (Scripted(gpus=[USED], ours=[8]), "processes 8 still"),
        (Scripted(probes=[ProbeFailed("run a kernel: misaligned address")]), "misaligned"),
        (Scripted(probes=[Probe(100e3, wrong=3)]), "3 wrong results"),
        (Scripted(probes=[Probe(201e3, wrong=0)]), "takes 201 µs instead of 100 µs"),
        (Scripted(orphans=["process 9 (runner)"]), "left behind: process 9"),
        (Scripted(builds=[ToolchainError("cannot build a")]), "compiled here: cannot build a"),
    ],
)
def test_a_spoilt_device_is_found_out_after_some_patience(
    known: SupervisorConfig, device: Scripted, words: str
) -> None:
    assert words in health.check(known, device.instruments)
    assert device.waited_s == sum(health.PAUSES_S)


def test_a_context_that_takes_time_to_go_is_waited_for(known: SupervisorConfig) -> None:
    device = Scripted(gpus=[Gpu(memory_used=9000 * MIB), Gpu(memory_used=9000 * MIB), FINE])
    assert health.check(known, device.instruments) == ""
    assert device.waited_s == sum(health.PAUSES_S[:2])


def test_memory_is_held_against_the_best_that_was_seen_since_the_boot(
    known: SupervisorConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    creeping = [Gpu(memory_used=(600 + 200 * step) * MIB) for step in (1, 2)]
    assert health.check(known, Scripted(gpus=creeping[:1]).instruments) == ""
    assert "1000 MiB" in health.check(known, Scripted(gpus=creeping[1:]).instruments)
    monkeypatch.setattr(health, "_boot", lambda: "another")
    assert health.check(known, Scripted(gpus=[Gpu(memory_used=5000 * MIB)]).instruments) == ""


def test_what_an_oracle_holds_that_stepped_aside_is_no_leftover(known: SupervisorConfig) -> None:
    """Another evaluation's inputs stay on the GPU while it waits for its next turn."""
    mine, gib = os.getpid(), 1 << 30
    holds = Gpu(memory_used=16 * gib + 700 * MIB, memory_by_pid={mine: 16 * gib})
    device = Scripted(gpus=[holds], ours=[mine])
    assert f"processes {mine} still" in health.check(known, device.instruments)
    living.note(known, mine)
    assert health.check(known, Scripted(gpus=[holds], ours=[mine]).instruments) == ""
    leaks = Gpu(memory_used=19 * gib, memory_by_pid={mine: 16 * gib})
    assert "19456 MiB" in health.check(known, Scripted(gpus=[leaks], ours=[mine]).instruments)


@pytest.mark.parametrize("verdict", Verdict)
def test_only_some_verdicts_make_a_device_suspect(
    known: SupervisorConfig, verdict: Verdict
) -> None:
    broken = Scripted(probes=[ProbeFailed("the probe did not end")])
    reason = health.after(known, verdict, broken.instruments)
    assert bool(reason) is (verdict in health.SUSPECT_VERDICTS)
    assert health.unfit(known) == reason


@pytest.mark.parametrize(
    "device",
    [
        Scripted(gpus=[Gpu(memory_used=600 * MIB, uncorrected=1)]),
        Scripted(gpus=[NvmlError("the GPU is lost")]),
        Scripted(orphans=["process 9 (runner)"]),
    ],
)
def test_what_shows_after_any_evaluation_has_the_device_looked_at(
    known: SupervisorConfig, device: Scripted
) -> None:
    assert health.after(known, Verdict.CORRECT, device.instruments)
    assert health.unfit(known)


def test_a_look_after_an_evaluation_does_not_ask_who_has_the_device_by_now(
    known: SupervisorConfig,
) -> None:
    busy = Scripted(gpus=[Gpu(memory_used=9000 * MIB, memory_by_pid={8: 0})], ours=[8])
    assert health.after(known, Verdict.CORRECT, busy.instruments) == ""
    assert busy.waited_s == 0
    seen = [["process 9 (runner)"], ["process 11 (runner)"]]  # dying, and ended since
    dying = Scripted()
    instruments = replace(dying.instruments, orphans=lambda: seen.pop(0))
    assert health.after(known, Verdict.CORRECT, instruments) == ""
    assert dying.waited_s < 1
    assert seen == []


def test_an_unfit_device_stays_so_until_it_is_seen_to_work(known: SupervisorConfig) -> None:
    broken = Scripted(probes=[Probe(100e3, wrong=1)])
    assert health.after(known, Verdict.TIME_LIMIT, broken.instruments)
    assert health.settle(known, broken.instruments)
    health.suspect(known, Verdict.VIOLATION)
    assert "wrong results" in health.unfit(known)
    assert health.look(known, Scripted().instruments) == ""
    assert health.unfit(known) == ""
    assert health.settle(known, broken.instruments) == ""  # nobody suspects it now
    (known.cache_folder / "health" / "cuda-0-mark.json").write_text("{")
    assert "can't be read" in health.unfit(known)
    assert health.settle(known, Scripted().instruments) == ""
    assert health.unfit(known) == ""


def test_a_cpu_is_fine_when_no_process_is_left(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    blind = Scripted(gpus=[NvmlError("no driver")])
    assert health.after(config, Verdict.RUNTIME_ERROR, blind.instruments) == ""
    left = Scripted(orphans=["process 9 (runner)"])
    assert "process 9" in health.after(config, Verdict.RUNTIME_ERROR, left.instruments)
    lost = Scripted(builds=[ToolchainError("cannot build a: b")])
    assert "cannot build a" in health.after(config, Verdict.RUNTIME_ERROR, lost.instruments)


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
def test_the_probe_computes_right_results_in_the_jail(tmp_path: Path) -> None:
    found = probe(SupervisorConfig(cache_folder=tmp_path))
    assert found.wrong == 0
    assert found.time_ns > 0

"""Whether a device is as it was before a submission ran on it, and what is remembered of that."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu_runner.data.numbers import duration_text
from gpu_runner.data.verdict import DeviceKind, Verdict
from gpu_runner.supervisor.build.build import build_support
from gpu_runner.supervisor.device import gpu_state
from gpu_runner.supervisor.device.gpu_state import Gpu
from gpu_runner.supervisor.device.lock import exclusive
from gpu_runner.supervisor.device.toolchain import ToolchainError
from gpu_runner.supervisor.host import living
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.host.leftovers import orphans
from gpu_runner.supervisor.host.nvml import NvmlError
from gpu_runner.supervisor.tools import probe
from gpu_runner.supervisor.tools.probe import Probe, ProbeFailed

logger = logging.getLogger(__name__)

SUSPECT_VERDICTS = frozenset(
    {Verdict.RUNTIME_ERROR, Verdict.TIME_LIMIT, Verdict.MEMORY_LIMIT, Verdict.VIOLATION}
)
"""After these a device may be broken: by a kernel that hung, or that spoilt its context."""

PAUSES_S = (0.5, 2.0, 5.0, 10.0)
"""Waits before a device is looked at again: a context that was killed takes time to be gone."""

MEMORY_SLACK_BYTES = 256 << 20  # chosen: the driver's own memory comes and goes
SLOWEST = 2.0
"""The probe may take so many times its remembered time: clocks rise only while it runs."""


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """How a device is looked at; tests put others in their place."""

    gpu: Callable[[int], Gpu] = gpu_state.look
    probe: Callable[[SupervisorConfig], Probe] = probe.probe
    ours: Callable[[tuple[int, ...]], list[int]] = gpu_state.ours_among
    others: Callable[[tuple[int, ...]], list[str]] = gpu_state.others_among
    orphans: Callable[[], list[str]] = orphans
    build: Callable[[SupervisorConfig], Path] = build_support
    sleep: Callable[[float], None] = time.sleep


INSTRUMENTS = Instruments()


def check(config: SupervisorConfig, instruments: Instruments = INSTRUMENTS) -> str:
    """Empty if the device is fine, else a sentence; hold the device. May take a minute.

    A CPU is fine when no process of an evaluation is left, and programs of ours are there or can be
    built. A GPU also when its memory is in use as it was, no new memory error is counted, and a
    known kernel takes its time and gives the right results. What a healthy device was like is
    remembered until the host starts anew.
    """
    reason = ""
    for pause_s in (0.0, *PAUSES_S):
        instruments.sleep(pause_s)
        reason = _fault(config, instruments)
        if not reason:
            return ""
        logger.warning("%s: %s", config.device, reason)
    return reason


def suspect(config: SupervisorConfig, verdict: Verdict) -> None:
    """Note that the device must be looked at before it is used again, if the verdict says so."""
    if verdict in SUSPECT_VERDICTS and not _mark(config):
        write_atomically(_path(config, "mark"), {"unfit": "", "verdict": verdict.value})


def settle(config: SupervisorConfig, instruments: Instruments = INSTRUMENTS) -> str:
    """Look at a device that is under suspicion or unfit; hold the device.

    Empty if it is fine, now or without a look. Else the reason, and `unfit` says so from now on.
    """
    if not _mark(config):
        return ""
    reason = check(config, instruments)
    if reason:
        write_atomically(_path(config, "mark"), {"unfit": reason})
    else:
        _path(config, "mark").unlink(missing_ok=True)
    return reason


def look(config: SupervisorConfig, instruments: Instruments = INSTRUMENTS) -> str:
    """As `settle` whether or not there is a suspicion, and holds the device itself."""
    with exclusive(config):
        suspect(config, Verdict.RUNTIME_ERROR)
        return settle(config, instruments)


def after(
    config: SupervisorConfig, verdict: Verdict, instruments: Instruments = INSTRUMENTS
) -> str:
    """To be called when an evaluation has ended and its processes are gone.

    After every one it is seen whether something is left or a GPU counts new errors, which takes
    some milliseconds and no device. Where that or the verdict raises a suspicion, holds the device.
    """
    if not _mark(config) and (reason := _glance(config, instruments)):
        logger.warning("%s: %s", config.device, reason)
        suspect(config, Verdict.RUNTIME_ERROR)
    suspect(config, verdict)
    if not _mark(config):
        return ""
    with exclusive(config):
        return settle(config, instruments)


def unfit(config: SupervisorConfig) -> str:
    """Why the device must not be used now; empty if it may be."""
    return str(_mark(config).get("unfit", ""))


def _fault(config: SupervisorConfig, instruments: Instruments) -> str:
    if left := instruments.orphans():
        return f"left behind: {', '.join(left[:3])}"
    try:
        instruments.build(config)
    except ToolchainError as error:
        return f"nothing can be compiled here: {str(error).splitlines()[0]}"
    if config.kind is not DeviceKind.CUDA:
        return ""
    try:
        return _gpu_fault(config, instruments)
    except (NvmlError, ProbeFailed, ToolchainError) as error:
        return f"the GPU does not work: {str(error).splitlines()[0]}"


def _glance(config: SupervisorConfig, instruments: Instruments) -> str:
    """What shows while another evaluation may have the device: not who is on it, nor how fast."""
    left = {*instruments.orphans()}
    for pause_s in PAUSES_S[:3]:
        if not left:
            break
        instruments.sleep(pause_s)  # of whoever uses a GPU, the end takes time
        left &= {*instruments.orphans()}
    if left:
        return f"left behind: {', '.join(sorted(left)[:3])}"
    if config.kind is not DeviceKind.CUDA:
        return ""
    try:
        return _damage(instruments.gpu(config.index), _remembered(config))
    except NvmlError as error:
        return f"the GPU does not work: {error}"


def _damage(gpu: Gpu, known: dict[str, Any]) -> str:
    if gpu.damaged:
        return f"the GPU's memory is damaged: {gpu.damaged}"
    if gpu.uncorrected > known.get("uncorrected", gpu.uncorrected):
        return f"{gpu.uncorrected} uncorrected memory errors: reset the GPU"
    if gpu.remapped > known.get("remapped", gpu.remapped):
        return f"{gpu.remapped} rows of memory remapped: reset the GPU"
    return ""


def _gpu_fault(config: SupervisorConfig, instruments: Instruments) -> str:
    gpu, known = instruments.gpu(config.index), _remembered(config)
    holders = living.holders(config)
    apart = living.without(gpu.pids, holders)
    if pids := instruments.ours(tuple(apart)):
        return f"processes {', '.join(map(str, pids))} still use the GPU"
    if damage := _damage(gpu, known):
        return damage
    used_before = known.get("memory_used", gpu.memory_used)
    theirs = sum(size for pid, size in gpu.memory_by_pid.items() if pid not in apart)
    slack = MEMORY_SLACK_BYTES + max(theirs, len(holders) * living.BYTES_EACH)
    if gpu.memory_used > used_before + slack:
        used, before = gpu.memory_used >> 20, used_before >> 20
        others = " and ".join(instruments.others(gpu.pids)[:3]) or "no process that we can see"
        words = f"{used} MiB of the GPU's memory are in use, up from {before} MiB"
        return f"{words}; apart from our processes, {others} uses it"
    tried = instruments.probe(config)
    if tried.wrong:
        return f"a known kernel gave {tried.wrong} wrong results"
    time_ns = known.get("time_ns", tried.time_ns)
    if tried.time_ns > SLOWEST * time_ns:
        took, usual = duration_text(tried.time_ns), duration_text(time_ns)
        return f"a known kernel takes {took} instead of {usual}"
    _remember(config, gpu, min(tried.time_ns, time_ns), min(gpu.memory_used, used_before))
    return ""


def _remembered(config: SupervisorConfig) -> dict[str, Any]:
    found = _read(_path(config, "healthy"))
    return found if found.get("boot") == _boot() else {}


def _remember(config: SupervisorConfig, gpu: Gpu, time_ns: float, memory_used: int) -> None:
    kept = {**asdict(gpu), "time_ns": time_ns, "memory_used": memory_used, "boot": _boot()}
    write_atomically(_path(config, "healthy"), kept)


def _mark(config: SupervisorConfig) -> dict[str, object]:
    return _read(_path(config, "mark"))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except FileNotFoundError:
        return {}
    except ValueError:  # whatever it said, the device is looked at again
        return {"unfit": f"{path} can't be read"}
    return found if isinstance(found, dict) else {}


def _path(config: SupervisorConfig, what: str) -> Path:
    return config.cache_folder / "health" / f"{config.kind}-{config.index}-{what}.json"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

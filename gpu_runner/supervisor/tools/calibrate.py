"""Measures what a device reaches, in the jail, and remembers it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.build import build_trusted
from gpu_runner.supervisor.build.declaration import NATIVE_FOLDER
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import Peak, cuda_architecture
from gpu_runner.supervisor.device.environment import stack
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import read_json, write_atomically
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.host.processors import measured_cpus, team_environment
from gpu_runner.supervisor.oracle.client import cuda_environment
from gpu_runner.supervisor.runner.faults import RunnerUnfit

logger = logging.getLogger(__name__)

MOST_TRIES = 4
"""Measurements of a device's peaks; what then still seems too low stays."""

_PROBE_TIMEOUT_S = 120.0  # chosen: many times what the probe takes
_NOISE = 1.05  # chosen: of a measurement that nobody disturbed
_BYTES, _FLOPS, _TENSOR = "_bytes_per_s", "_flop_per_s", "_tensor"
_NEEDED = {"read", "copy"}, {"float32", "float64"}


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What a device was measured to reach.

    bytes_per_s: `read` and `copy` (both directions counted) of streams from memory, and `cache`; of
    a CPU also `one_core`, a copy by one thread alone. flops: FLOP/s by dtype, and by dtype with the
    suffix `_tensor` where tensor cores did it. tries: how often it was measured; the best counts.
    """

    bytes_per_s: Mapping[str, float]
    flops: Mapping[str, float]
    tries: int = 1

    @property
    def is_plausible(self) -> bool:
        """Whether all cores moved as much as one of them: else a neighbour was in the way."""
        moved = self.bytes_per_s
        return moved.get("one_core", 0.0) <= _NOISE * max(moved["read"], moved["copy"])

    def joined(self, other: Calibration) -> Calibration:
        """The best of both."""
        return Calibration(
            bytes_per_s=_best(self.bytes_per_s, other.bytes_per_s),
            flops=_best(self.flops, other.flops),
            tries=self.tries + other.tries,
        )

    def peak(self) -> Peak:
        """The best of each; TF32 is no float32."""
        rates: dict[str, float] = {}
        for name, rate in self.flops.items():
            dtype = name.removesuffix(_TENSOR)
            rates[dtype] = max(rate, rates.get(dtype, 0.0))
        names = self.bytes_per_s.keys() - {"cache"}
        return Peak(max(self.bytes_per_s[name] for name in names), rates)


def calibrated(config: SupervisorConfig) -> Calibration | None:
    """What was measured before of this device under this software, or None."""
    path = _path(config)
    if not path.exists():
        return None
    try:
        return decode(Calibration, read_json(path))
    except ValueError as error:
        logger.warning("%s is not a calibration, so it's ignored: %s", path, error)
        return None


def calibrate(config: SupervisorConfig) -> Calibration:
    """Measure the device, which the caller holds, and remember it.

    What is not plausible is measured again. Raises `RunnerUnfit` if the probe fails,
    `ToolchainError` if it cannot be built.
    """
    found = parse(_run(config))
    while not found.is_plausible and found.tries < MOST_TRIES:
        found = found.joined(parse(_run(config)))
    store(config, found)
    return found


def calibrate_again(config: SupervisorConfig, known: Calibration) -> Calibration:
    """Measure once more what something has exceeded, as `calibrate`; not for ever."""
    if known.tries >= MOST_TRIES:
        return known
    found = known.joined(parse(_run(config)))
    store(config, found)
    return found


def store(config: SupervisorConfig, calibration: Calibration) -> None:
    """Remember a calibration for this device, driver, software and probe."""
    write_atomically(_path(config), encode(calibration))


def parse(text: str) -> Calibration:
    """The probe's output: a name and a number a line. Raises `RunnerUnfit` if one is missing."""
    moved, rates = {}, {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        try:
            number = float(value)
        except ValueError:
            continue
        if not (math.isfinite(number) and number > 0):
            raise RunnerUnfit(f"the probe of this device's peaks measured {line!r}")
        if name.endswith(_BYTES):
            moved[name.removesuffix(_BYTES)] = number
        elif name.endswith(_FLOPS):
            rates[name.removesuffix(_FLOPS)] = number
    if not (_NEEDED[0] <= moved.keys() and _NEEDED[1] <= rates.keys()):
        raise RunnerUnfit(f"the probe of this device's peaks failed: {text[:300]}")
    return Calibration(bytes_per_s=moved, flops=rates)


def _best(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in {**one, **other}}


def _source(config: SupervisorConfig) -> str:
    return f"peaks{config.kind.language.suffix}"


def _path(config: SupervisorConfig) -> Path:
    text = (NATIVE_FOLDER / _source(config)).read_text()
    key = f"{stack(config)} {config.index} {toolchain.machine()} {text}"
    return config.cached("peaks", key).with_suffix(".json")


def _run(config: SupervisorConfig) -> str:
    """What the probe printed, and why it failed if it did."""
    on_cuda = config.kind is DeviceKind.CUDA
    index = config.index if on_cuda else None
    program = _build(config)
    limits = Limits(cpu_s=600, memory_bytes=config.memory_bytes, processes=config.processes)
    environment = {**cuda_environment(index), **team_environment()}
    jail = Jail(limits=limits, paths=[program], environment=environment, cuda_index=index)
    with ChildProcess(jail, [str(program)], jailed=not config.allow_unjailed) as child:
        child.measure(measured_cpus())
        status = child.wait(_PROBE_TIMEOUT_S)
        if status != 0:
            raise RunnerUnfit(f"the probe of this device's peaks failed: {child.output[-300:]}")
        return child.output


def _build(config: SupervisorConfig) -> Path:
    source = _source(config)
    flags = ["-std=c++17", "-O3"]
    if config.kind is DeviceKind.CUDA:
        flags.append(toolchain.for_architecture(cuda_architecture(config.index)))
    else:
        flags += ["-march=native", "-ffp-contract=fast", "-fopenmp"]
    files = {source: (NATIVE_FOLDER / source).read_text()}
    return build_trusted(Recipe(files, source, config.kind, tuple(flags)), config)

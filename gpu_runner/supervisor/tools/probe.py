"""A small program of ours that tries a device: a kernel's time and results, and its memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.build import build_trusted
from gpu_runner.supervisor.build.declaration import NATIVE_FOLDER
from gpu_runner.supervisor.build.recipe import Recipe
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.device.device import cuda_architecture
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.oracle.client import cuda_environment

TIMEOUT_S = 60.0
"""A device that hangs lets its driver wait for ever; making a context takes about a second."""


class ProbeFailed(Exception):
    """The program failed or hung; the message is one line."""


@dataclass(frozen=True)
class Probe:
    """Best time of the probe's kernel, and how many of its results are wrong."""

    time_ns: float
    wrong: int


def probe(config: SupervisorConfig) -> Probe:
    """Run the fixed kernel. Raises `ProbeFailed` if it cannot, or `ToolchainError`."""
    facts = run(config, "check")
    return Probe(facts["time_ns"], int(facts["wrong"]))


def run(config: SupervisorConfig, *arguments: str) -> dict[str, float]:
    """Run the program, jailed, and return the figures that it prints, by name."""
    cuda = config.index if config.kind is DeviceKind.CUDA else None
    program = build_probe(config)
    limits = Limits(cpu_s=120, memory_bytes=config.memory_bytes, processes=config.processes)
    jail = Jail(limits=limits, paths=[program], environment=cuda_environment(cuda), cuda_index=cuda)
    command = [str(program), *arguments]
    with ChildProcess(jail, command, jailed=not config.allow_unjailed) as child:
        status = child.wait(TIMEOUT_S)
    if status is None:
        raise ProbeFailed(f"the probe did not finish within {TIMEOUT_S:g} s")
    lines = [line for line in child.output.splitlines() if line]
    if status != 0:
        raise ProbeFailed(lines[-1] if lines else f"the probe died with status {status}")
    return _figures(lines)


def _figures(lines: list[str]) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in (line.split(" ", 1) for line in lines)}
    except ValueError:
        raise ProbeFailed(f"the probe said {lines[:1]}") from None


def build_probe(config: SupervisorConfig) -> Path:
    """The program, for the configured kind of device."""
    source = f"probe{config.kind.language.suffix}"
    files = {
        source: (NATIVE_FOLDER / "probe.cpp").read_text(),
        "anchor.cpp": (NATIVE_FOLDER / "anchor.cpp").read_text(),
    }
    flags = ["-O2", "-std=c++17"]
    if config.kind is DeviceKind.CUDA:
        flags.append(toolchain.for_architecture(cuda_architecture(config.index)))
        flags += toolchain.shared_cuda_runtime()
    else:
        flags.append("-fopenmp")
    return build_trusted(Recipe(files, source, config.kind, tuple(flags)), config)

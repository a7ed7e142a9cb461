"""What a runner process runs, its command line, and its jail."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.jail import Jail, Limits
from gpu_runner.supervisor.oracle import cuda_environment, python_jail
from gpu_runner.supervisor.toolchain import TORCH_MODULE


@dataclass(frozen=True)
class Target:
    """What a runner process runs: a submission's library, or the reference as a baseline."""

    abi: Abi
    direction: Direction
    library: Path | None = None  # a submission's
    symbol: str = ""  # c ABI
    shim: Path | None = None  # c ABI
    runner: Path | None = None  # c ABI
    support: Path | None = None  # torch ABI
    interposed: Path | None = None  # torch ABI on CUDA: see native/interposed.h
    baseline: str = ""  # "eager", "compiled", or "null", which does nothing

    @property
    def python(self) -> bool:
        """Whether the runner is the torch runner rather than the C++ one."""
        return self.abi is Abi.TORCH or bool(self.baseline)


def program_of(target: Target, config: SupervisorConfig, words: Sequence[str]) -> list[str]:
    """The command line of a runner that is told these words of its socket and shared memory."""
    if target.python:
        return _torch_program(target, config, words)
    return _native_program(target, words)


def jail_of(target: Target, config: SupervisorConfig) -> Jail:
    """What a runner sees and may do."""
    return (_torch_jail if target.python else _native_jail)(target, config)


def _native_program(target: Target, words: Sequence[str]) -> list[str]:
    runner, library, shim = target.runner, target.library, target.shim
    return [str(runner), *words, str(library), target.symbol, str(shim)]


def _native_jail(target: Target, config: SupervisorConfig) -> Jail:
    cuda = config.index if config.kind is DeviceKind.CUDA else None
    files = (target.runner, target.library, target.shim)
    return Jail(
        limits=_native_limits(config),
        paths=[path for path in files if path is not None],
        environment=cuda_environment(cuda),
        cuda_index=cuda,
    )


def _native_limits(config: SupervisorConfig) -> Limits:
    limits = Limits(cpu_s=3600, memory_bytes=config.memory_bytes, processes=config.processes)
    if config.kind is DeviceKind.CUDA:
        return limits  # the driver wants files and descriptors of its own
    # Together these bound the memory that can hide in anonymous files.
    return replace(limits, file_bytes=64 << 20, temporary_bytes=256 << 20, open_files=128)


def _torch_program(target: Target, config: SupervisorConfig, words: Sequence[str]) -> list[str]:
    support = str(target.support)
    if target.baseline:
        role = ["baseline", target.baseline, target.direction.value, support]
    else:
        role = ["extension", str(target.library), TORCH_MODULE, support]
    module = "gpu_runner.engine.torch_runner"
    interposed = str(target.interposed or "-")
    return [sys.executable, "-m", module, *words, *role, interposed, config.kind.value]


def _torch_jail(target: Target, config: SupervisorConfig) -> Jail:
    cuda = config.index if config.kind is DeviceKind.CUDA else None
    files = (target.library, target.support, target.interposed)
    return python_jail(config, cuda, [path for path in files if path is not None])

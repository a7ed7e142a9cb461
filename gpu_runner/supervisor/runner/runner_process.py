"""Starts the processes that run kernels: a small C++ program, or Python with PyTorch."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.build import build_interposed, build_support
from gpu_runner.supervisor.build.module import module_environment
from gpu_runner.supervisor.device.toolchain import TORCH_MODULE
from gpu_runner.supervisor.host.arena import Arena, DeviceArena
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.host.processors import team_environment
from gpu_runner.supervisor.oracle.client import cuda_environment, python_jail
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper

Memory = Arena | DeviceArena

FRESH_MEMORY = {"GLIBC_TUNABLES": f"glibc.malloc.perturb={0xD3 ^ 0xFF}"}
"""Has memory that is allocated in a process that is not timed hold the byte 0xD3 everywhere.

Fresh pages hold zeros, and what needs them is right by luck. This is a large number in all dtypes.
"""

_MANY_PROCESSORS = 8
"""A host with so many has room to import PyTorch beside a measurement."""


class NativeProcess:
    """The C++ runner, which is given its memory and its submission when it starts."""

    def __init__(
        self,
        target: Target,
        memory: Sequence[Memory | None],
        config: SupervisorConfig,
        wrapper: Wrapper | None = None,
        team: int = 0,
    ) -> None:
        """`memory` in the order of the program's words. team: see `Conditions`."""
        self.channel = Channel()
        words = [
            str(self.channel.child_descriptor),
            *("-" if a is None else a.word for a in memory),
        ]
        runner, library, shim = target.runner, target.library, target.shim
        program = [str(runner), *words, str(library), target.symbol, str(shim)]
        jail = _native_jail(target, config, team)
        self.child = _started(self.channel, program, jail, config, wrapper, memory)

    def begin(self) -> None:
        """Nothing: it began when it was started."""


class TorchProcess:
    """The torch runner. It imports PyTorch at once, and is given all else when it is to begin.

    So it can be started long before its submission is built; it opens no device before.
    """

    def __init__(
        self, config: SupervisorConfig, wrapper: Wrapper | None = None, team: int = 0
    ) -> None:
        """team: see `Conditions`."""
        self.channel = Channel()
        self._config = config
        self._start: tuple[bytes, list[int]] | None = None
        self._library: Path | None = None
        self._keeping: int | None = None
        self._handles, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        support, interposed = build_support(config), build_interposed(config)
        descriptors = [self.channel.child_descriptor, theirs.fileno()]
        program = [
            *(sys.executable, "-m", "gpu_runner.engine.torch_runner"),
            *map(str, descriptors),
            *(str(support), str(interposed or "-"), config.kind.value),
        ]
        cuda = config.index if config.kind is DeviceKind.CUDA else None
        ours = [support] if interposed is None else [support, interposed]
        # On a GPU a pool of threads has no use, and each is stopped and looked at in every call.
        pool = team_environment(team) if cuda is None else {"OMP_NUM_THREADS": "1"}
        pool |= FRESH_MEMORY if team else {}
        jail = python_jail(config, cuda, ours, {**pool, **module_environment(config)})
        self.child = _started(self.channel, program, jail, config, wrapper, [], theirs.fileno())
        theirs.close()

    def give(self, target: Target, memory: Sequence[Memory]) -> None:
        """What it is to run, and the memory of its calls; `begin` tells it."""
        if target.baseline:
            role = ["baseline", target.baseline, target.direction.value]
        elif target.is_module:
            manner = "measured" if target.keeping is None else "rehearsed"
            role = ["module", target.direction.value, manner]
        else:
            role = ["extension", TORCH_MODULE]
        sizes = [arena.size for arena in memory if isinstance(arena, DeviceArena)]
        words = {"role": role, "sizes": sizes}
        self._start = json.dumps(words).encode(), [arena.descriptor for arena in memory]
        self._library, self._keeping = target.library, target.keeping
        self.child.arenas = tuple(a.descriptor for a in memory if isinstance(a, Arena))

    def begin(self) -> None:
        """Let it open the device and load what it runs, once PyTorch is there."""
        if self._start is None:
            raise RuntimeError("the torch runner was given nothing to run")
        words, descriptors = self._start
        library = [] if self._library is None else [os.open(self._library, os.O_RDONLY)]
        keeping = [] if self._keeping is None else [self._keeping]
        with contextlib.suppress(OSError):  # it has died: whoever waits for its answer sees that
            socket.send_fds(self._handles, [words], [*descriptors, *library, *keeping])
        for descriptor in library:
            os.close(descriptor)
        self._handles.close()

    def close(self) -> None:
        """End it, if nobody wants it any more."""
        self._handles.close()
        self.channel.close()
        self.child.kill()


class TorchProcesses:
    """The torch runners of an evaluation: as many as are expected, one of them started ahead."""

    def __init__(self, config: SupervisorConfig) -> None:
        """Start nothing."""
        self._config = config
        self._expected = 0
        self._ahead: TorchProcess | None = None

    def expect(self, count: int) -> None:
        """So many more will be taken; the first is started now."""
        self._expected += count
        if self._expected > 0 and self._ahead is None:
            self._ahead = TorchProcess(self._config)

    def take(self, team: int = 0) -> TorchProcess:
        """One to be given its target; the next may be started beside it."""
        process = None if team else self._ahead
        if process is not None:
            self._ahead = None
        self._expected = max(self._expected - 1, 0)
        taken = process or TorchProcess(self._config, team=team)
        if self._expected and self._ahead is None and self.is_roomy():
            self._ahead = TorchProcess(self._config)
        return taken

    def is_roomy(self) -> bool:
        """Whether one may be started beside a measurement, or a build."""
        many = len(os.sched_getaffinity(0)) >= _MANY_PROCESSORS
        return many and self._config.kind is DeviceKind.CUDA

    def close(self) -> None:
        """End what nobody took."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None


def _started(
    channel: Channel,
    program: Sequence[str],
    jail: Jail,
    config: SupervisorConfig,
    wrapper: Wrapper | None,
    memory: Sequence[Memory | None],
    *more: int,
) -> ChildProcess:
    shared = [arena for arena in memory if arena is not None]
    descriptors = [channel.child_descriptor, *more, *(arena.descriptor for arena in shared)]
    if wrapper is not None:
        program, jail = wrapper.command(program), wrapper.jail(jail)
        descriptors.append(wrapper.descriptor)
    child = ChildProcess(
        jail,
        program,
        jailed=not config.allow_unjailed,
        descriptors=descriptors,
        arenas=[arena.descriptor for arena in shared if isinstance(arena, Arena)],
    )
    child.watch()
    channel.started()
    return child


def _native_jail(target: Target, config: SupervisorConfig, team: int) -> Jail:
    cuda = config.index if config.kind is DeviceKind.CUDA else None
    files = (target.runner, target.library, target.shim)
    return Jail(
        limits=_native_limits(config),
        paths=[path for path in files if path is not None],
        environment={
            **cuda_environment(cuda),
            **team_environment(team),
            **(FRESH_MEMORY if team else {}),
        },
        cuda_index=cuda,
    )


def _native_limits(config: SupervisorConfig) -> Limits:
    limits = Limits(cpu_s=3600, memory_bytes=config.memory_bytes, processes=config.processes)
    if config.kind is DeviceKind.CUDA:
        return limits  # the driver wants files and descriptors of its own
    # Together these bound the memory that can hide in anonymous files.
    return replace(limits, file_bytes=64 << 20, temporary_bytes=256 << 20, open_files=128)

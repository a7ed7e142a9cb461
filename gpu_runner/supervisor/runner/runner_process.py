"""Starts the processes that run kernels: a small C++ program, or Python with PyTorch."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.supervisor.build.build import build_interposed, build_support
from gpu_runner.supervisor.build.module import module_environment, modules_ahead
from gpu_runner.supervisor.device.lock import lent_lock
from gpu_runner.supervisor.device.toolchain import TORCH_MODULE
from gpu_runner.supervisor.host.arena import Arena, DeviceArena
from gpu_runner.supervisor.host.channel import Channel
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import sealed
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.host.processors import team_environment
from gpu_runner.supervisor.oracle.client import cuda_environment, python_jail
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper

_NAMES = re.compile(
    r"lib(?:cublas|cudnn|cusparse|cufft|cusolver|curand|cutensor|nccl|npp|nvblas"
    r"|openblas|mkl|dnnl|blis|c?blas|lapacke?|gsl)\w*[.-].*"
)
_FOLDERS = (
    *("lib", "lib64", "lib/*-linux-gnu", "lib/*-linux-gnu/*", "local/lib", "local/lib64"),
    *("local/cuda*/lib64", "local/cuda*/targets/*/lib"),
)
"""Where loaders look, and where CUDA's packages put them."""


@functools.cache
def vendor_libraries(usr: Path = Path("/usr")) -> tuple[Path, ...]:
    """Their files, without the links that lead to them."""
    found = {
        path.resolve()
        for folder in _FOLDERS
        for path in usr.glob(f"{folder}/lib*.so*")
        if _NAMES.fullmatch(path.name)
    }
    return tuple(sorted(path for path in found if path.is_file() and path.is_relative_to(usr)))


Memory = Arena | DeviceArena

FRESH_MEMORY = {"GLIBC_TUNABLES": f"glibc.malloc.perturb={0xD3 ^ 0xFF}"}
"""Has memory that is allocated in a process that is not timed hold the byte 0xD3 everywhere.

Fresh pages hold zeros, and what needs them is right by luck. This is a large number in all dtypes.
"""


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
        self.child.watch()

    handles = -1

    def begin(self) -> None:
        """Nothing: it began when it was started."""

    def hang_up(self) -> None:
        """Say that nothing more will come."""
        self.channel.close()

    def look(self) -> None:
        """Nothing: its library is bound read-only, and was built by us."""


class TorchProcess:
    """The torch runner. It imports PyTorch at once, and is given all else when it is to begin.

    So it can be started long before its submission is built; it opens no device before.
    """

    def __init__(
        self,
        config: SupervisorConfig,
        wrapper: Wrapper | None = None,
        team: int = 0,
        *,
        ahead: bool = False,
        quietly: bool = False,
    ) -> None:
        """team: see `Conditions`. ahead: start it for any evaluation; its taker calls `adopt`.

        quietly: it imports PyTorch while nobody is measured.
        """
        self.channel = Channel()
        self._config, self._is_wrapped = config, wrapper is not None
        self._role: list[str] = []
        self._memory: Mapping[str, Memory] = {}
        self._sizes: Mapping[str, int] = {}
        self._target = Target(Abi.TORCH, Direction.FORWARD)
        self._handles, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        support, interposed = build_support(config), build_interposed(config)
        descriptors = [self.channel.child_descriptor, theirs.fileno()]
        program = [
            *(sys.executable, "-m", "gpu_runner.engine.runner.torch_runner"),
            *map(str, descriptors),
            *(str(support), str(interposed or "-"), config.kind.value),
            modules_ahead(config, whole=ahead and not quietly),
        ]
        cuda = config.index if config.kind is DeviceKind.CUDA else None
        ours = self._ours = [support] if interposed is None else [support, interposed]
        # On a GPU a pool of threads has no use, and each is stopped and looked at in every call.
        pool = team_environment(team) if cuda is None else {"OMP_NUM_THREADS": "1"}
        pool |= FRESH_MEMORY if team else {}
        jail = python_jail(config, cuda, ours, {**pool, **module_environment(config)})
        with theirs, lent_lock(config, wanted=quietly) as lock:
            program += map(str, lock)
            more = [theirs.fileno(), *lock]
            self.child = _started(self.channel, program, jail, config, wrapper, [], *more)
        if not ahead:
            self.child.watch()

    def adopt(self) -> None:
        """Take over the process. The caller may be a fork of the process that started it."""
        self.child.adopt()

    @property
    def handles(self) -> int:
        """By which it is handed memory."""
        return self._handles.fileno()

    def give(self, target: Target, memory: Mapping[str, Memory], sizes: Mapping[str, int]) -> None:
        """What it is to run, and the memory of its calls by name; `begin` tells it.

        sizes: in bytes, of a device's memory, or of what a CPU's inputs will need.
        """
        if target.baseline:
            role = ["baseline", target.baseline, target.direction.value]
        elif target.is_module:
            manner = "measured" if target.rehearsing is None else "rehearsed"
            role = ["module", target.direction.value, manner]
        else:
            role = ["extension", TORCH_MODULE]
        self._role, self._sizes = role, sizes
        self._memory, self._target = memory, target
        self.child.arenas = tuple(a.descriptor for a in memory.values() if isinstance(a, Arena))

    def begin(self) -> None:
        """Let it open the device and load what it runs, once PyTorch is there."""
        if not self._role:
            raise RuntimeError("the torch runner was given nothing to run")
        descriptors = {name: arena.descriptor for name, arena in self._memory.items()}
        if self._target.rehearsing is not None:
            descriptors["keeping"], workshop = self._target.rehearsing
            descriptors["workshop"] = workshop.descriptor
        with contextlib.ExitStack() as opened:
            for name, file in _handed_over(self._target):
                descriptors[name] = opened.enter_context(file).fileno()
            told = {"role": self._role, "sizes": dict(self._sizes)}
            told["descriptors"] = list(descriptors)
            with contextlib.suppress(OSError):  # it has died: whoever waits for its answer sees it
                socket.send_fds(self._handles, [json.dumps(told).encode()], [*descriptors.values()])

    def hang_up(self) -> None:
        """Say that nothing more will come."""
        self._handles.close()
        self.channel.close()

    def look(self) -> None:
        """Note which code the stopped process has mapped; not under a tool, which maps its own."""
        if self._target.is_watched and not self._is_wrapped:
            self._target.witness.look(self.child.pid, self._ours)

    def close(self) -> None:
        """End it, if nobody wants it any more."""
        self.hang_up()
        self.child.kill()


def _handed_over(target: Target) -> Iterator[tuple[str, IO[bytes]]]:
    """Copies of what a process runs that it cannot change: neither its own, nor the next one's."""
    if target.library is not None:
        yield "library", sealed("library", target.library.read_bytes())
    if target.is_module:
        yield "source", sealed("source", target.source.encode())


def our_libraries(config: SupervisorConfig) -> list[str]:
    """Files of ours that a torch runner has loaded."""
    return [str(path) for path in (build_support(config), build_interposed(config)) if path]


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
    channel.started()
    return child


def _native_jail(target: Target, config: SupervisorConfig, team: int) -> Jail:
    cuda = config.index if config.kind is DeviceKind.CUDA else None
    files = (target.runner, target.library, target.shim)
    return Jail(
        limits=_native_limits(config),
        paths=[path for path in files if path is not None],
        hidden=vendor_libraries(),
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

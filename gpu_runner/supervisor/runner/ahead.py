"""Starts processes before a job needs them, so that PyTorch is already imported when it does."""

from __future__ import annotations

import logging
import mmap
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

from gpu_runner.data.protocol import LEAST_TEAM
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.build.importer import Importer
from gpu_runner.supervisor.device.device import DeviceError
from gpu_runner.supervisor.device.toolchain import ToolchainError
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.host.killed import KilledFromOutside
from gpu_runner.supervisor.host.process import ChildProcess
from gpu_runner.supervisor.runner.runner_process import TorchProcess

logger = logging.getLogger(__name__)

_MANY_PROCESSORS = 8  # chosen: enough to import PyTorch without disturbing a measurement


def is_roomy(config: SupervisorConfig) -> bool:
    """Whether a process may be started while something else is measured or built."""
    many = len(os.sched_getaffinity(0)) >= _MANY_PROCESSORS
    return many and config.kind is DeviceKind.CUDA


class _Waiting(Protocol):
    """A process that waits to be told what to do."""

    @property
    def child(self) -> ChildProcess: ...

    def adopt(self) -> None: ...

    def close(self) -> None: ...


_IMPORTER = "importer"
_STARTED: Mapping[object, Callable[..., _Waiting]] = {
    _IMPORTER: partial(Importer, ahead=True),
    0: partial(TorchProcess, ahead=True),
    LEAST_TEAM: partial(TorchProcess, team=LEAST_TEAM, ahead=True),
}
"""How to start each kind: one imports a module; runners differ by team (`Conditions.team`)."""


class TorchAhead:
    """The processes that a slot starts before it has a job: one of each kind, each for one job.

    They have seen no submission yet. One thread starts them and must outlive them; forks of its
    process take them.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._held: dict[object, tuple[SupervisorConfig, _Waiting]] = {}
        self._taken = mmap.mmap(-1, mmap.PAGESIZE)  # a byte for each kind; a fork sets it

    @property
    def pids(self) -> list[int]:
        """Ids of the processes that wait, which nobody may sweep away."""
        return [process.child.pid for _, process in self._held.values()]

    def start(self, config: SupervisorConfig, *, runners: bool = True) -> None:
        """Start the kinds that are missing, without waiting for them; warn if one cannot start.

        runners: whether to start torch runners, too, and not only the process that imports modules.
        """
        if config.allow_unjailed:  # without a jail, a submission could reach them
            return
        for kind, started in _STARTED.items():
            if kind in self._held or not (runners or kind is _IMPORTER):
                continue
            try:
                self._held[kind] = config, started(config, quietly=not is_roomy(config))
            except (JailError, ToolchainError, DeviceError, KilledFromOutside, OSError) as error:
                logger.warning("could not start a process with PyTorch ahead of a job: %s", error)
                return

    def runner(self, config: SupervisorConfig, team: int) -> TorchProcess | None:
        """A runner that waits, or None. The caller may be a fork of the process that started it."""
        found = self._take(config, team)
        return found if isinstance(found, TorchProcess) else None

    def importer(self, config: SupervisorConfig) -> Importer | None:
        """Like `runner`, for the process that imports a module."""
        found = self._take(config, _IMPORTER)
        return found if isinstance(found, Importer) else None

    def bury(self) -> None:
        """End the processes that a fork took before it ended: they have seen a submission."""
        for place, kind in enumerate(_STARTED):
            if kind in self._held:
                process = self._held[kind][1]
                if self._taken[place] or not process.child.running:
                    process.close()
                    del self._held[kind]
            self._taken[place] = 0

    def close(self) -> None:
        """End all processes that wait."""
        for _, process in self._held.values():
            process.close()
        self._held.clear()

    def _take(self, config: SupervisorConfig, kind: object) -> _Waiting | None:
        made_for, process = self._held.get(kind, (config, None))
        if process is None or replace(made_for, niceness=config.niceness) != config:
            return None
        if not process.child.running:
            return None
        del self._held[kind]
        self._taken[list(_STARTED).index(kind)] = 1
        process.adopt()
        return process


class TorchProcesses:
    """Gives an evaluation its torch runners, and starts some that it expects ahead of time."""

    def __init__(self, config: SupervisorConfig, waiting: TorchAhead | None = None) -> None:
        """Start nothing yet; `waiting` holds the processes that the slot has started."""
        self._config, self._waiting = config, waiting or TorchAhead()
        self._expected: Counter[int] = Counter()
        self._ahead: dict[int, TorchProcess] = {}

    def expect(self, count: int, team: int = 0) -> None:
        """Expect so many more; start the first now if it will be measured, or if there is room."""
        self._expected[team] += count
        if team == 0 or self.is_roomy():
            self._start(team)

    def take(self, team: int = 0) -> TorchProcess:
        """Return a runner that has no target yet; the next one may be started meanwhile."""
        process = self._ahead.pop(team, None) or self._taken(team)
        self._expected[team] -= 1
        if self.is_roomy():
            self._start(team)
        return process

    def is_roomy(self) -> bool:
        """See `is_roomy`."""
        return is_roomy(self._config)

    def close(self) -> None:
        """End the runners that nobody took."""
        for process in self._ahead.values():
            process.close()
        self._ahead.clear()

    def _start(self, team: int) -> None:
        if self._expected[team] > 0 and team not in self._ahead:
            self._ahead[team] = self._taken(team)

    def _taken(self, team: int) -> TorchProcess:
        waiting = self._waiting.runner(self._config, team)
        return waiting or TorchProcess(self._config, team=team)

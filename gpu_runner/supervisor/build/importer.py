"""Runs the process that imports a Python submission, in a jail where compilers may run."""

from __future__ import annotations

import contextlib
import json
import socket
import sys

from gpu_runner.data.verdict import Direction
from gpu_runner.supervisor.build.module import module_environment, modules_ahead
from gpu_runner.supervisor.device.lock import lent_lock
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import sealed
from gpu_runner.supervisor.host.jail import Jail, Limits, python_environment, python_paths
from gpu_runner.supervisor.host.process import ChildProcess


class Importer:
    """A jailed process without a GPU. It imports PyTorch right away, and later one submission."""

    def __init__(
        self, config: SupervisorConfig, *, ahead: bool = False, quietly: bool = False
    ) -> None:
        """ahead: start it before any build needs it; whoever takes it calls `adopt`.

        quietly: it imports PyTorch while nobody is measured.
        """
        self._handles, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        jailed = not config.allow_unjailed
        with theirs, lent_lock(config, wanted=quietly) as lock:
            modules = modules_ahead(config, whole=ahead and not quietly)
            words = [str(theirs.fileno()), config.kind.value, modules, *map(str, lock)]
            program = [sys.executable, "-m", "gpu_runner.engine.runner.preparation", *words]
            jail, given = module_jail(config), [theirs.fileno(), *lock]
            self.child = ChildProcess(jail, program, jailed=jailed, descriptors=given)
        if not ahead:
            self.child.watch()

    def adopt(self) -> None:
        """Take over the process. The caller may be a fork of the process that started it."""
        self.child.adopt()

    def begin(self, source: str, direction: Direction, shop: int, archive: int) -> None:
        """Have it import a source (`NormalForm` as JSON) and write what the compilers made.

        shop: a socket to the process that compiles extensions. archive: a file open for writing.
        """
        with sealed("source", source.encode()) as file:
            told = {"direction": direction.value, "descriptors": ["source", "workshop", "archive"]}
            with contextlib.suppress(OSError):  # it has died, which `child.wait` will notice
                socket.send_fds(
                    self._handles, [json.dumps(told).encode()], [file.fileno(), shop, archive]
                )

    def close(self) -> None:
        self._handles.close()
        self.child.kill()


def build_limits(config: SupervisorConfig) -> Limits:
    """The limits of a jail in which compilers run."""
    return Limits(
        cpu_s=int(config.build_timeout_s * 2),
        memory_bytes=config.memory_bytes,
        processes=config.processes,
        file_bytes=512 << 20,
        temporary_bytes=1 << 30,
        niceness=config.niceness,
    )


def module_jail(config: SupervisorConfig) -> Jail:
    """A jail without a device, in which compilers run for a module."""
    environment = {**python_environment(), **module_environment(config)}
    return Jail(limits=build_limits(config), paths=python_paths(), environment=environment)

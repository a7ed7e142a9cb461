"""Where evaluations get their oracle from: one that was started ahead, or a new one.

It also holds the torch runners that were started ahead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace

from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.oracle.client import Oracle
from gpu_runner.supervisor.runner.ahead import TorchAhead

logger = logging.getLogger(__name__)


class Oracles:
    """Lends oracles, whose start takes longer than most evaluations.

    One may be started ahead: it has imported PyTorch and opened the device, and has seen no task
    and no seed. Each serves one evaluation. For one thread, which must outlive them (an oracle dies
    with the thread that started it); close it at last.
    """

    def __init__(self) -> None:
        """Hold none yet."""
        self._ahead: tuple[SupervisorConfig, Oracle] | None = None
        self.torch = TorchAhead()
        """Torch runners, and the process that imports modules, that were started ahead."""

    @property
    def pids(self) -> list[int]:
        """Ids of the processes that were started ahead, which nobody may sweep away."""
        return [*([self._ahead[1].pid] if self._ahead is not None else []), *self.torch.pids]

    def start_ahead(self, config: SupervisorConfig) -> None:
        """Start one for the next evaluation, if none is there; returns at once.

        None is started on a host without memory for it: the evaluation will say so.
        """
        if self._ahead is not None and self._ahead[1].running:
            return
        self.drop_ahead()
        try:
            oracle = Oracle(config, ahead=True)
        except JailError as error:
            logger.warning("no oracle is started ahead: %s", error)
            return
        self._ahead = (config, oracle)

    def drop_ahead(self) -> None:
        """End the one that was started ahead, also if a fork of this process has been lent it."""
        if self._ahead is not None:
            self._ahead[1].close()
        self._ahead = None

    @contextmanager
    def lend(self, config: SupervisorConfig) -> Iterator[Oracle]:
        """An oracle for one evaluation, with a task still to be loaded."""
        with closing(self.taken_ahead(config) or Oracle(config)) as oracle:
            yield oracle

    def taken_ahead(self, config: SupervisorConfig) -> Oracle | None:
        """The one that was started ahead, if it serves a host configured like this."""
        if self._ahead is None or not _serves(self._ahead[0], config) or not self._ahead[1].running:
            return None
        oracle = self._ahead[1]
        self._ahead = None
        oracle.adopt()
        return oracle

    def close(self) -> None:
        """End all that are there."""
        self.drop_ahead()
        self.torch.close()


def _serves(made_for: SupervisorConfig, config: SupervisorConfig) -> bool:
    return replace(made_for, niceness=0) == replace(config, niceness=0)


def an_oracle(oracles: Oracles | None, config: SupervisorConfig) -> AbstractContextManager[Oracle]:
    """One of `oracles`, or a new one; it ends with the evaluation."""
    return Oracle(config) if oracles is None else oracles.lend(config)

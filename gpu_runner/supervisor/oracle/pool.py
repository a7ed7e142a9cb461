"""Where evaluations get their oracle from: one that was started ahead, a new one, or the last."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.jail import JailError
from gpu_runner.supervisor.oracle.client import Oracle

logger = logging.getLogger(__name__)

MOST_EVALUATIONS = 100
"""After so many an oracle ends: its jail limits the processor time that it may use in all."""


class Oracles:
    """Lends oracles, whose start takes longer than most evaluations.

    One may be started ahead: it has imported PyTorch and opened the device, and has seen no task
    and no seed. It serves one evaluation. With `reuse`, the oracle of an evaluation serves the same
    version of the same task again, on a CPU: nothing but the task's own code has run in it, and
    that decides over the task's verdicts anyway. For one thread, which must outlive them (an oracle
    dies with the thread that started it); close it at last.
    """

    def __init__(self, *, reuse: bool = False) -> None:
        """Hold none yet."""
        self._reuse = reuse
        self._ahead: tuple[SupervisorConfig, Oracle] | None = None
        self._kept: tuple[tuple[str, SupervisorConfig], Oracle] | None = None
        self._evaluations = 0

    @property
    def pids(self) -> list[int]:
        """Of the one that was started ahead: nobody may sweep it away."""
        return [self._ahead[1].pid] if self._ahead is not None else []

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
    def lend(self, config: SupervisorConfig, task: Task) -> Iterator[Oracle]:
        """An oracle for one evaluation, with a task still to be loaded."""
        key = (task.digest(), config)
        oracle = self._serving(key)
        if oracle is None:
            self._close_kept()
            oracle = self._taken_ahead(config) or Oracle(config)
            self._kept = (key, oracle)
        self._evaluations += 1
        try:
            yield oracle
        finally:
            if not self._reuse or config.kind is DeviceKind.CUDA or oracle.failed:
                self._close_kept()

    def _taken_ahead(self, config: SupervisorConfig) -> Oracle | None:
        if self._ahead is None or not _serves(self._ahead[0], config) or not self._ahead[1].running:
            return None
        oracle = self._ahead[1]
        self._ahead = None
        oracle.adopt()
        return oracle

    def _serving(self, key: tuple[str, SupervisorConfig]) -> Oracle | None:
        if self._kept is None or self._evaluations >= MOST_EVALUATIONS:
            return None
        return self._kept[1] if self._kept[0] == key and self._kept[1].running else None

    def _close_kept(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
        self._kept, self._evaluations = None, 0

    def close(self) -> None:
        """End all that are there."""
        self._close_kept()
        self.drop_ahead()


def _serves(made_for: SupervisorConfig, config: SupervisorConfig) -> bool:
    return replace(made_for, niceness=0) == replace(config, niceness=0)


@contextmanager
def an_oracle(oracles: Oracles | None, config: SupervisorConfig, task: Task) -> Iterator[Oracle]:
    """One of `oracles`, or a new one that ends with the evaluation."""
    if oracles is not None:
        with oracles.lend(config, task) as oracle:
            yield oracle
    else:
        with Oracle(config) as oracle:
            yield oracle

"""Where evaluations get their oracle from: a new one each, or the last one of the same task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.oracle import Oracle

MOST_EVALUATIONS = 100
"""After so many an oracle ends: its jail limits the processor time that it may use in all."""


class Oracles:
    """Keeps the oracle of the last evaluation, whose start is most of a small one's time.

    Nothing but the task's own code has run in it, and that code decides over the task's verdicts
    anyway: so it serves the same version of the same task, and no other. On CUDA every evaluation
    has a new one, which leaves nothing on the device. For one thread, which must outlive it (the
    oracle dies with the thread that started it); close it at last.
    """

    def __init__(self) -> None:
        """Hold none yet."""
        self._kept: tuple[tuple[str, SupervisorConfig], Oracle] | None = None
        self._evaluations = 0

    @contextmanager
    def lend(self, config: SupervisorConfig, task: Task) -> Iterator[Oracle]:
        """An oracle for one evaluation, with a task still to be loaded."""
        key = (task.digest(), config)
        oracle = self._serving(key)
        if oracle is None:
            self.close()
            oracle = Oracle(config)
            self._kept = (key, oracle)
        self._evaluations += 1
        try:
            yield oracle
        finally:
            if config.kind is DeviceKind.CUDA or oracle.failed:
                self.close()

    def _serving(self, key: tuple[str, SupervisorConfig]) -> Oracle | None:
        if self._kept is None or self._evaluations >= MOST_EVALUATIONS:
            return None
        return self._kept[1] if self._kept[0] == key and self._kept[1].running else None

    def close(self) -> None:
        """End the process, if there is one."""
        if self._kept is not None:
            self._kept[1].close()
        self._kept, self._evaluations = None, 0


@contextmanager
def an_oracle(oracles: Oracles | None, config: SupervisorConfig, task: Task) -> Iterator[Oracle]:
    """One of `oracles`, or a new one that ends with the evaluation."""
    if oracles is not None:
        with oracles.lend(config, task) as oracle:
            yield oracle
    else:
        with Oracle(config) as oracle:
            yield oracle

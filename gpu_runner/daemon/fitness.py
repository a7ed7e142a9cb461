"""Keeps a daemon from taking jobs while its device does not work, and looks at it again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from gpu_runner.daemon import lineage
from gpu_runner.daemon.child import Child
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.tools import health

logger = logging.getLogger(__name__)

Look = Callable[[SupervisorConfig], str]
"""Looks at the device, marks it unfit or clears the mark, and returns the reason or nothing."""


class Fitness:
    """The mark on the device, and a process of its own that looks whether it is still right.

    A look can take a minute, or hang with the device's driver; the daemon never waits for one.
    """

    def __init__(
        self,
        config: SupervisorConfig,
        recheck_s: float,
        look: Look = health.look,
        prepare: tuple[Look, Look] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Look every `recheck_s` seconds while the device is unfit.

        prepare: what makes the host ready for its first evaluation, before and after the first
        look at a GPU; each says why it failed.
        """
        self._config = config
        self._recheck_s = recheck_s
        self._look, self._prepare = look, prepare
        self._clock = clock
        self._due_at = clock() + recheck_s
        self._child = Child()

    @property
    def pids(self) -> list[int]:
        """The process that looks, if one does: nobody may sweep it away."""
        return self._child.pids

    def begin(self) -> None:
        """Make the host ready, and learn what a healthy GPU is like before a submission has run."""
        looks = [self._look] if self._config.kind is DeviceKind.CUDA else []
        before, after = ([step] for step in self._prepare) if self._prepare else ([], [])
        self._start([*before, *looks, *after])

    def reason(self) -> str:
        """Why no job may be taken now, or empty; starts another look when it is time."""
        if self._child.has_ended():
            self._due_at = self._clock() + self._recheck_s
        reason = health.unfit(self._config)
        if reason and not self._child.is_started and self._clock() >= self._due_at:
            self._start([self._look])
        return reason

    def end(self) -> None:
        """End a look that is under way."""
        self._child.end()

    def _start(self, steps: Sequence[Look]) -> None:
        if steps:
            self._child.start(_run, self._config, steps)


def _run(config: SupervisorConfig, steps: Sequence[Look]) -> None:
    lineage.adopt_orphans()
    for step in steps:
        reason = step(config)
        logger.info("%s of %s: %s", step.__name__, config.device, reason or "it works")

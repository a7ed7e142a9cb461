"""Keeps a daemon's slot processes alive, and ends them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from gpu_runner.daemon import lineage
from gpu_runner.daemon.events import Outbox
from gpu_runner.daemon.slot import SlotContext, report_loss, run_slot
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.daemon.sources.contract import Source
from gpu_runner.data.queue import Urgency

logger = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.5  # chosen, as the next two: a slot that fails at once must not fill the log
_LONGEST_PAUSE_S = 30.0  # chosen: and yet works soon after the fault is mended
_HEALTHY_S = 60.0  # chosen: twice the longest pause; who lived so long begins anew
_fork = multiprocessing.get_context("fork")  # slots share memory with the daemon


@dataclass
class Slot:
    """A place for one job at a time, and the process that fills it; urgencies: what it takes.

    status: of a slot that has ended as nothing is left for it; None for all others.
    """

    number: int
    urgencies: Sequence[Urgency]
    state: SlotState = field(default_factory=SlotState)
    process: multiprocessing.process.BaseProcess | None = None
    stood: lineage.Standstill = field(default_factory=lineage.Standstill)
    status: int | None = None
    started_at: float = 0.0
    not_before: float = 0.0
    pause_s: float = _FIRST_PAUSE_S

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.is_alive()


class Slots:
    def __init__(self, context: SlotContext, kinds: Sequence[Sequence[Urgency]]) -> None:
        """Make a slot for each of these lists of urgencies, none of them started."""
        self._context = context
        self._all = [Slot(number, kind) for number, kind in enumerate(kinds, start=1)]

    @property
    def states(self) -> list[SlotState]:
        """The shared states, one a slot."""
        return [slot.state for slot in self._all]

    @property
    def running(self) -> bool:
        return any(slot.alive for slot in self._all)

    @property
    def statuses(self) -> list[int]:
        """Of slots for which nothing is left to do."""
        return [slot.status for slot in self._all if slot.status is not None]

    @property
    def done(self) -> bool:
        """Whether nothing is left for any slot."""
        return len(self.statuses) == len(self._all)

    def start(self) -> None:
        """Start every slot that has no process, after a pause that grows while it keeps dying."""
        for slot in self._all:
            idle = slot.process is None and slot.status is None
            if idle and time.monotonic() >= slot.not_before:
                arguments = (self._context, slot.number, slot.urgencies, slot.state, os.getpid())
                slot.process = _fork.Process(target=run_slot, args=arguments)
                slot.process.start()
                slot.started_at = time.monotonic()

    def collect(self, source: Source, keep: Collection[int] = ()) -> None:
        """Take leave of dead slots: report what they lost, and kill what they left behind.

        A slot that stands still, stopped by a signal, is killed. `keep` are other processes of the
        daemon's own.
        """
        for slot in self._all:
            if slot.process is None:
                continue
            if slot.process.is_alive():
                if slot.stood.is_over(slot.process.pid or 0):
                    logger.warning("slot %d was stuck, so it was killed", slot.number)
                    slot.process.kill()
                continue
            self._bury(slot, slot.process, source)
        lineage.sweep(keep=[*self._pids(), *keep])

    def _bury(
        self, slot: Slot, process: multiprocessing.process.BaseProcess, source: Source
    ) -> None:
        status = process.exitcode
        logger.info("slot %d ended with status %s", slot.number, status)
        cause = f"the runner's slot process died (status {status})"
        report_loss(slot.state, source, Outbox(self._context.outbox), cause)
        slot.state.clear()
        process.close()
        slot.process = None
        if not source.is_endless and status is not None and status >= 0:
            slot.status = status
            return
        now = time.monotonic()
        healthy = now - slot.started_at > _HEALTHY_S
        slot.pause_s = _FIRST_PAUSE_S if healthy else min(2 * slot.pause_s, _LONGEST_PAUSE_S)
        slot.not_before = now + slot.pause_s

    def signal(self, number: signal.Signals) -> None:
        for slot in self._all:
            if slot.process is not None and slot.process.pid and slot.process.is_alive():
                os.kill(slot.process.pid, number)

    def drop(self, names: Collection[str]) -> None:
        """End the jobs of these names, which are no longer this runner's."""
        for slot in self._all:
            if slot.state.name in names and not slot.state.dropped:
                logger.info("the site took back %s, so this runner is stopping it", slot.state.name)
                slot.state.drop()

    def _pids(self) -> list[int]:
        return [slot.process.pid for slot in self._all if slot.process and slot.process.pid]

"""A slot: takes a job, forks a work-horse for it, watches that, and sweeps up what it leaves."""

from __future__ import annotations

import logging
import multiprocessing
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType

from gpu_runner.daemon import jobs, lineage
from gpu_runner.daemon.events import Outbox, report_or_keep
from gpu_runner.daemon.heartbeat import Runner
from gpu_runner.daemon.jobs import JobContext, JobTimeout
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.daemon.sources.contract import Away, Connect, Source
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import EventKind
from gpu_runner.data.order import Ask, JobName, Order
from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Abi, Language, Mode
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.ahead import is_roomy
from gpu_runner.supervisor.runner.pool import Oracles

logger = logging.getLogger(__name__)

NOTHING_LEFT, SOME_LEFT = 0, 1
"""Exit statuses where jobs come from a folder; the second: it has files that cannot be read."""
STOPPED = 0
"""That of a slot which was told to stop."""

_TICK_S = 0.05  # chosen: a wait that nobody notices
_GRACE_S = 30.0  # chosen: a job that may take no longer has this to say so itself
_FIRST_PAUSE_S = 0.2  # chosen, as the next: a site that restarts is back within some of these
_LONGEST_PAUSE_S = 5.0  # chosen: and nobody's log fills up meanwhile
_fork = multiprocessing.get_context("fork")  # the work-horse shares the numbers of its events


@dataclass(frozen=True, kw_only=True)
class SlotContext:
    """What every slot of a daemon needs.

    outbox: folder of events that are not sent yet. ready: whether to keep an oracle for the next
    job.
    """

    connect: Connect
    runner: Runner
    supervisor: SupervisorConfig
    outbox: Path
    ready: bool = True


class _Stop(BaseException):
    """Told to stop while there is nothing to do."""


def run_slot(
    context: SlotContext, number: int, urgencies: Sequence[Urgency], state: SlotState, parent: int
) -> None:
    """The whole life of a slot process, forked from `parent`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lineage.die_with(parent)
    lineage.adopt_orphans()
    slot = _SlotProcess(context, urgencies, state)
    signal.signal(signal.SIGTERM, slot.ask_to_stop)
    try:
        sys.exit(slot.run())
    except _Stop:
        sys.exit(STOPPED)
    finally:
        slot.close()


class _SlotProcess:
    def __init__(
        self, context: SlotContext, urgencies: Sequence[Urgency], state: SlotState
    ) -> None:
        self._context, self._urgencies, self._state = context, urgencies, state
        self._source = context.connect()
        self._outbox = Outbox(context.outbox)
        self._oracles = Oracles()
        self._is_pythonic = False  # whether the last job needed torch runners
        self._wants_oracle = context.ready and list(urgencies) != [Urgency.BUILDS]
        self._stopping = self._is_idle = False

    def run(self) -> int:
        """Work until told to stop, or until nothing is left."""
        pause_s = _FIRST_PAUSE_S
        self._make_ready()
        while not self._stopping:
            try:
                order = self._next()
            except (Away, DataError) as error:
                if pause_s == _FIRST_PAUSE_S:
                    logger.warning("cannot take a job, trying again: %s", error)
                self._rest(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            pause_s = _FIRST_PAUSE_S
            if order is not None:
                self._work_at(order)
            elif not self._source.is_endless:
                return SOME_LEFT if self._source.unread else NOTHING_LEFT
        return STOPPED

    def ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        """On SIGTERM: finish the job at work, if there is one; the daemon kills who takes long."""
        self._stopping = True
        if self._is_idle:
            raise _Stop

    def close(self) -> None:
        self._oracles.close()

    def _next(self) -> Order | None:
        runner = self._context.runner
        ask = Ask(
            runner=runner.name,
            boot_id=runner.boot_id,
            device=runner.device,
            urgencies=tuple(self._urgencies),
            ticket=secrets.token_hex(16),
        )
        if self._source.is_brief:
            return self._source.take(ask)
        with self._idle():
            return self._source.take(ask)

    def _rest(self, pause_s: float) -> None:
        with self._idle():
            time.sleep(pause_s)

    @contextmanager
    def _idle(self) -> Iterator[None]:
        """A stop ends what is within at once."""
        self._is_idle = True
        try:
            if self._stopping:
                raise _Stop
            yield
        finally:
            self._is_idle = False

    def _work_at(self, order: Order) -> None:
        self._state.begin(order.name)
        arguments = (order, self._context, self._state, self._source, self._oracles, os.getpid())
        horse = _fork.Process(target=_work_horse, args=arguments)
        horse.start()
        cause = self._watch(horse, order)
        horse.join()
        self._oracles.torch.bury()  # what it took may still run, and the device is free already
        cause = cause or _cause_of_death(horse.exitcode)
        horse.close()
        report_loss(self._state, self._source, self._outbox, cause)
        self._source.done()
        self._state.clear()
        if order.request.get("mode") != Mode.COMPILE:
            self._oracles.drop_ahead()  # it has seen the task, and an evaluation's seeds
        self._is_pythonic = _needs_torch(order)
        if swept := lineage.sweep(self._oracles.pids):
            logger.warning("killed %d processes that %s left behind", swept, order.name)
        self._make_ready()

    def _watch(self, horse: ForkProcess, order: Order) -> str:
        """Wait for the work-horse's end; why it was killed, or nothing where it was not."""
        deadline = time.monotonic() + order.timeout_s + _GRACE_S
        stood = lineage.Standstill()
        cause = ""
        while horse.is_alive() and not cause:
            horse.join(_TICK_S)
            if self._state.dropped:
                cause = "the site has taken the job back"
            elif time.monotonic() > deadline:
                cause = "the job took longer than allowed, and was killed"
            elif stood.is_over(horse.pid or 0):
                cause = "the runner's work process was stopped by a signal, so it was killed"
        if cause:
            horse.kill()
        return cause

    def _make_ready(self) -> None:
        """Keep an oracle ready for the next job, unless the slot's jobs need none.

        Also keep the processes for Python kernels ready, if there is room or the last job needed
        them.
        """
        if not self._context.ready or self._stopping:
            return
        config = self._context.supervisor
        if self._wants_oracle:
            self._oracles.start_ahead(config)
        if self._is_pythonic or is_roomy(config):
            self._oracles.torch.start(config, runners=self._wants_oracle)


def _needs_torch(order: Order) -> bool:
    """Whether a job evaluates a kernel that takes and returns tensors."""
    task, solution = (order.request.get(name) or {} for name in ("task", "solution"))
    return task.get("abi") == Abi.TORCH or solution.get("language") == Language.PYTHON


def _work_horse(
    order: Order,
    context: SlotContext,
    state: SlotState,
    source: Source,
    oracles: Oracles,
    parent: int,
) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the daemon answers them
    lineage.die_with(parent)
    signal.signal(signal.SIGALRM, _time_is_over)
    signal.alarm(order.timeout_s)
    job = JobContext(
        runner=context.runner.name,
        supervisor=context.supervisor,
        state=state,
        source=context.connect() if source.is_endless else source,
        outbox=Outbox(context.outbox),
        oracles=oracles,
    )
    outcome = jobs.do(order, job)
    logger.info("%s: %s", order.name, outcome or "done")


def _time_is_over(*_: object) -> None:
    raise JobTimeout("the job took longer than allowed")


def report_loss(state: SlotState, source: Source, outbox: Outbox, cause: str) -> None:
    """Report LOST for the work that died in a slot, unless its result is safe already."""
    if not state.lost:
        return
    name = JobName.read(state.name)
    event = name.event(state.next_seq(), EventKind.LOST, {"reason": cause})
    logger.error("lost %s: %s", name, cause)
    state.finish()
    report_or_keep(event, source, outbox)


def _cause_of_death(status: int | None) -> str:
    if status is not None and status < 0:
        return f"the runner's work process was killed by {signal.Signals(-status).name}"
    return f"the runner's work process ended with status {status}"

"""Keeps a daemon's slot processes alive, and ends them."""

from __future__ import annotations

import functools
import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import redis

from gpu_runner.daemon import jobs, lineage
from gpu_runner.daemon.events import EventStream, Spool, report_or_keep
from gpu_runner.daemon.heartbeat import Runner
from gpu_runner.daemon.jobs import Evaluate, JobContext
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.daemon.slot_worker import SlotHooks, SlotWorker
from gpu_runner.data.event import Event, EventKind
from gpu_runner.data.queue import Urgency, queue_name
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.pool import Oracles

logger = logging.getLogger(__name__)

EVALUATE = "gpu_runner.daemon.jobs.evaluate"
"""Name under which the site enqueues an evaluation."""

FILTER_TASK = "gpu_runner.daemon.jobs.filter_task"
"""Name under which the site enqueues the check of a task."""

MEASURE_BASELINES = "gpu_runner.daemon.jobs.measure_baselines"
"""Name under which it enqueues baselines; these three are the whole allow-list."""

SOCKET_TIMEOUT_S = 5.0  # chosen: Redis answers in milliseconds, so it is gone
_FIRST_PAUSE_S = 0.5  # chosen, as the next two: a slot that fails at once must not fill the log
_LONGEST_PAUSE_S = 30.0  # chosen: and yet works soon after the fault is mended
_HEALTHY_S = 60.0  # chosen: twice the longest pause; who lived so long begins anew
_fork = multiprocessing.get_context("fork")  # slots share memory with the daemon


@dataclass(frozen=True, kw_only=True)
class SlotContext:
    """What every slot of a daemon needs; ready: whether to keep an oracle for the next job."""

    redis_url: str
    runner: Runner
    supervisor: SupervisorConfig
    spool: Spool
    evaluate: Evaluate
    ready: bool = True


@dataclass
class Slot:
    """A place for one job at a time, and the process that fills it; queues: it takes from them."""

    number: int
    queues: Sequence[str]
    state: SlotState = field(default_factory=SlotState)
    process: multiprocessing.process.BaseProcess | None = None
    started_at: float = 0.0
    not_before: float = 0.0
    pause_s: float = _FIRST_PAUSE_S

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.is_alive()


def run_slot(context: SlotContext, slot: Slot, parent: int) -> None:
    """The whole life of a slot process, forked from `parent`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    lineage.die_with(parent)
    lineage.adopt_orphans()
    connection = redis.Redis.from_url(context.redis_url)
    ready = Ready(context, slot.queues)
    job_context = JobContext(
        runner=context.runner.name,
        supervisor=context.supervisor,
        state=slot.state,
        stream=EventStream(connection),
        spool=context.spool,
        evaluate=functools.partial(context.evaluate, oracles=ready.oracles),
    )
    hooks = SlotHooks(
        state=slot.state,
        on_loss=functools.partial(_report_loss, slot.state, context, job_context.stream),
        before=ready.begin,
        after=ready.used,
        keep=lambda: ready.oracles.pids,
    )
    try:
        worker = SlotWorker(
            slot.queues,
            name=f"{context.runner.name}-{slot.number}-{os.getpid()}-{context.runner.boot_id[:8]}",
            connection=connection,
            functions={
                EVALUATE: functools.partial(jobs.evaluate, context=job_context),
                FILTER_TASK: functools.partial(jobs.filter_task, context=job_context),
                MEASURE_BASELINES: functools.partial(jobs.measure_baselines, context=job_context),
            },
            slot=hooks,
        )
        ready.begin()
        worker.work(logging_level="WARNING")
    except redis.RedisError as error:
        logger.warning("slot %d stops, Redis is away: %s", slot.number, error)
    finally:
        ready.oracles.close()


class Ready:
    """Keeps an oracle ready for a slot's next job, unless its jobs need none."""

    def __init__(self, context: SlotContext, queues: Sequence[str]) -> None:
        """Nothing is started before `begin`."""
        self.oracles = Oracles()
        self._config = context.supervisor
        self._builds = queue_name(context.runner.device, Urgency.BUILDS)
        self._needed = context.ready and list(queues) != [self._builds]

    def begin(self) -> None:
        """Start one, if none is there."""
        if self._needed:
            self.oracles.start_ahead(self._config)

    def used(self, queue: str) -> None:
        """A job of that queue is over: it has seen the task and the seeds of an evaluation."""
        if queue != self._builds:
            self.oracles.drop_ahead()


def _report_loss(state: SlotState, context: SlotContext, stream: EventStream, cause: str) -> None:
    """Report LOST for the work that died in a slot, unless its result is safe already."""
    if not state.lost:
        return
    event = Event(
        job=state.job,
        job_id=state.job_id,
        attempt=state.attempt,
        seq=state.next_seq(),
        kind=EventKind.LOST,
        payload={"runner": context.runner.name, "reason": cause},
    )
    logger.error("lost %s: %s", event.job_id, cause)
    state.finish()
    report_or_keep(event, stream, context.spool)


class Slots:
    """All slots of a daemon."""

    def __init__(
        self,
        context: SlotContext,
        kinds: Sequence[Sequence[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a slot for each of these lists of queues, none of them started."""
        self._context = context
        self._clock = clock
        self._all = [Slot(number, queues) for number, queues in enumerate(kinds, start=1)]

    @property
    def states(self) -> list[SlotState]:
        """The shared states, one a slot."""
        return [slot.state for slot in self._all]

    @property
    def running(self) -> bool:
        """Whether any slot's process is alive."""
        return any(slot.alive for slot in self._all)

    def start(self) -> None:
        """Start every slot that has no process, after a pause that grows while it keeps dying."""
        for slot in self._all:
            if slot.process is None and self._clock() >= slot.not_before:
                slot.process = _fork.Process(
                    target=run_slot, args=(self._context, slot, os.getpid())
                )
                slot.process.start()
                slot.started_at = self._clock()

    def collect(self, stream: EventStream, keep: Collection[int] = ()) -> None:
        """Take leave of dead slots: report what they lost, and kill what they left behind.

        `keep` are other processes of the daemon's own.
        """
        for slot in self._all:
            if slot.process is None or slot.process.is_alive():
                continue
            status = slot.process.exitcode
            logger.info("slot %d ended with status %s", slot.number, status)
            cause = f"the runner's slot process died (status {status})"
            _report_loss(slot.state, self._context, stream, cause)
            slot.state.clear()
            slot.process.close()
            slot.process = None
            now = self._clock()
            healthy = now - slot.started_at > _HEALTHY_S
            slot.pause_s = _FIRST_PAUSE_S if healthy else min(2 * slot.pause_s, _LONGEST_PAUSE_S)
            slot.not_before = now + slot.pause_s
        lineage.sweep(keep=[*self._pids(), *keep])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every slot's process."""
        for slot in self._all:
            if slot.process is not None and slot.process.pid and slot.process.is_alive():
                os.kill(slot.process.pid, number)

    def _pids(self) -> list[int]:
        return [slot.process.pid for slot in self._all if slot.process and slot.process.pid]

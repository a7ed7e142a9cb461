"""An RQ worker that runs the functions it is given by name, and no others."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import redis
from rq import Queue, Worker
from rq.job import Job
from rq.serializers import JSONSerializer

from gpu_runner.daemon import lineage
from gpu_runner.daemon.jobs import identity
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import REFUSED

logger = logging.getLogger(__name__)

Functions = Mapping[str, Callable[..., Any]]
"""Job functions by the name under which they are enqueued: the allow-list."""


class RefusedJob(Exception):
    """A job asks for something that this worker does not do; the message says what."""


def check(job: Job, functions: Functions) -> None:
    """Raise `RefusedJob` unless `job` is a plain call of an allowed function."""
    try:
        name, instance = job.func_name, job.instance
    except Exception as error:
        raise RefusedJob(f"not a JSON job: {error}") from error
    if name not in functions or instance is not None:
        raise RefusedJob(f"{name!r} is not a function that this worker runs")
    callbacks = (job._success_callback_name, job._failure_callback_name, job._stopped_callback_name)
    if any(callbacks) or job.webhooks:
        raise RefusedJob("callbacks and webhooks are not allowed")


def restricted_job(functions: Functions) -> type[Job]:
    """A job class that never imports anything by a name which came through Redis."""

    class RestrictedJob(Job):
        success_callback = None
        failure_callback = None
        stopped_callback = None

        @property
        def func(self) -> Callable[..., Any]:
            check(self, functions)
            return functions[str(self.func_name)]

        def send_webhooks(self, *_: Any, **__: Any) -> None:
            """Call nobody: the addresses came through Redis."""

    return RestrictedJob


@dataclass(frozen=True, kw_only=True)
class SlotHooks:
    """What a slot does around its jobs.

    state: shared with the daemon. on_loss: called with the cause when a work-horse dies. before: to
    be ready for the next job. after: what a job from the queue of that name has used up. keep:
    processes that are no job's leftovers.
    """

    state: SlotState
    on_loss: Callable[[str], None]
    before: Callable[[], None] = lambda: None
    after: Callable[[str], None] = lambda queue: None
    keep: Callable[[], Collection[int]] = tuple


class SlotWorker(Worker):
    """One slot: takes a job, forks a work-horse for it, and sweeps up whatever that leaves."""

    def __init__(
        self,
        queues: Sequence[str],
        *,
        name: str,
        connection: redis.Redis,
        functions: Functions,
        slot: SlotHooks,
    ) -> None:
        """Work on the queues of those names, in that order."""
        self._functions = functions
        self._slot = slot
        super().__init__(
            list(queues),
            name=name,
            connection=connection,
            job_class=restricted_job(functions),
            serializer=JSONSerializer,
            work_horse_killed_handler=self._report_loss,
            log_job_description=False,
        )

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Fork a work-horse for an allowed job; fail any other one without running it."""
        try:
            check(job, self._functions)
            self._slot.state.begin(*identity(job.args[0] if job.args else job.kwargs["request"]))
        except (RefusedJob, DataError, KeyError) as error:
            self._refuse(job, queue, str(error))
            return
        try:
            super().execute_job(job, queue)
        finally:
            self._slot.after(queue.name)
            if swept := lineage.sweep(self._slot.keep()):
                logger.warning("killed %d processes that job %s left behind", swept, job.id)
            self._slot.state.clear()
            self._slot.before()

    def _refuse(self, job: Job, queue: Queue, reason: str) -> None:
        logger.error("refused job %s: %s", job.id, reason)
        job.retries_left = 0
        self.prepare_execution(job)
        self.handle_job_failure(job, queue, exc_string=f"{REFUSED}{reason}")

    def _report_loss(self, job: Job, pid: int | None, status: int | None, _: object) -> None:
        self._slot.on_loss(_cause_of_death(status))

    def setup_work_horse_signals(self) -> None:
        """In the work-horse: die with the slot, as nobody else would know of this process."""
        super().setup_work_horse_signals()
        lineage.die_with(self.pid or os.getppid())

    def _install_signal_handlers(self) -> None:
        """Ctrl-C reaches the whole terminal: the daemon alone answers it, and tells the slots."""
        super()._install_signal_handlers()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def request_stop(self, signum: int, frame: Any) -> None:
        """Finish the current job and stop; the daemon kills who takes too long."""
        super().request_stop(signum, frame)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def set_current_job_working_time(self, *args: Any, **kwargs: Any) -> None:
        """Tell Redis how long the job runs; a Redis that is away must not end a measurement."""
        self._tolerate(super().set_current_job_working_time, *args, **kwargs)

    def maintain_heartbeats(self, job: Job) -> None:
        """Tell Redis that the job is alive; a Redis that is away must not end a measurement."""
        self._tolerate(super().maintain_heartbeats, job)

    def set_shutdown_requested_date(self) -> None:
        """Tell Redis about the stop; the stop itself does not wait for it."""
        self._tolerate(super().set_shutdown_requested_date)

    def _tolerate(self, action: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        try:
            action(*args, **kwargs)
        except redis.RedisError as error:
            logger.warning("Redis is away, the current job goes on: %s", error)


def _cause_of_death(status: int | None) -> str:
    if status is None:
        return "the runner's work process took longer than the job may and was killed"
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return f"the runner's work process was killed by {name}"
    return f"the runner's work process ended with status {os.waitstatus_to_exitcode(status)}"

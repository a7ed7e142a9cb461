"""Works through a spool: the jobs of a folder, on a host that reaches no site."""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import IO

from gpu_runner.daemon import jobs, lineage
from gpu_runner.daemon.config import DaemonConfig
from gpu_runner.daemon.events import EventStream, Spool
from gpu_runner.daemon.fitness import Fitness
from gpu_runner.daemon.jobs import Evaluate, JobContext
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event, EventKind, JobKind
from gpu_runner.data.spool import ENDS, SpooledJob, SpoolFolder
from gpu_runner.supervisor.device.device import device_slug
from gpu_runner.supervisor.evaluate import evaluate as supervise
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.pool import Oracles
from gpu_runner.supervisor.readiness import build_programs, make_ready

logger = logging.getLogger(__name__)

DONE, SOME_LEFT, NOT_FIT = 0, 1, 2
"""Exit statuses; the second: a file could not be read, all other jobs are done."""

_FUNCTIONS = {
    JobKind.EVALUATION: jobs.evaluate,
    JobKind.CHECK: jobs.filter_task,
    JobKind.BASELINES: jobs.measure_baselines,
}
_TICK_S = 0.05  # chosen: a wait that nobody notices
_fork = multiprocessing.get_context("fork")  # the child shares the numbers of its events


class EventFile(EventStream):
    """The upward door of a job in a spool: a line an event, the last one safe on the disk."""

    def __init__(self, file: IO[bytes]) -> None:
        """Append to `file`."""
        self._file = file

    def send(self, event: Event) -> None:
        """Append the event."""
        line = json.dumps(codec.encode(event), separators=(",", ":"), allow_nan=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        if event.kind in ENDS:
            os.fsync(self._file.fileno())


def work_spool(
    folder: Path,
    config: DaemonConfig,
    *,
    evaluate: Evaluate = supervise,
    probe_jail: Callable[[], str] = jail.probe,
) -> int:
    """Do all jobs of the spool that are not done, in the configured slots; return the exit status.

    Several hosts may work at one folder: a job is locked while it is at work. One that was ended
    in the middle is begun again. A file that cannot be read is named, and the others are done.
    SIGTERM lets the current jobs finish; a second one ends them. Raises `DataError` for a folder
    that is no spool, or one of another device.
    """
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("gpu_runner").setLevel(logging.INFO)
    return _Worker(SpoolFolder(folder), config, evaluate, probe_jail()).run()


class _Running:
    """A job at work in a process of its own; `held` keeps others from it."""

    def __init__(
        self, job: SpooledJob, context: JobContext, process: ForkProcess, held: ExitStack
    ) -> None:
        self.job, self.context, self.held = job, context, held
        self.cause = ""
        self._process, self.pid = process, process.pid or 0
        self._deadline = time.monotonic() + job.timeout_s

    def has_ended(self, *, is_killed: bool) -> bool:
        """Whether its process is gone, by itself or as it is too late; `cause` then says why."""
        late = time.monotonic() > self._deadline
        if self._process.is_alive() and not late and not is_killed:
            return False
        was_alive = self._process.is_alive()
        if was_alive:
            self._process.kill()
        self._process.join()
        status = self._process.exitcode
        self._process.close()
        died = f"its process died (status {status})"
        self.cause = "it took longer than the job may" if late and was_alive else died
        return True


class _Worker:
    def __init__(
        self, spool: SpoolFolder, config: DaemonConfig, evaluate: Evaluate, jail_fault: str
    ) -> None:
        slug = device_slug(config.kind, config.index)
        manifest = spool.manifest()
        if manifest is None:
            raise DataError("spool", f"{spool.folder} holds no spool.json: it is no spool")
        if manifest.device != slug:
            raise DataError("spool", f"its jobs are for {manifest.device}; this host has {slug}")
        self._spool = spool
        self._runner = config.runner_name(slug)
        self._jail_fault = "" if config.allow_unjailed else jail_fault
        self._supervisor = SupervisorConfig(
            kind=config.kind,
            index=config.index,
            device=slug,
            cache_folder=config.cache_folder,
            allow_unjailed=config.allow_unjailed,
        )
        prepare = (build_programs, make_ready) if config.ready else None
        self._fitness = Fitness(self._supervisor, config.recheck_s, prepare=prepare)
        self._evaluate = evaluate
        self._slots, self._ready = config.slot_count, config.ready
        self._stops = 0
        self._is_unfit = False

    def run(self) -> int:
        if self._jail_fault:
            logger.error("no jobs are taken: %s", self._jail_fault)
            return NOT_FIT
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        lineage.adopt_orphans()
        self._fitness.begin()
        try:
            while self._fitness.pids and self._stops < 2:
                self._fitness.reason()
                time.sleep(_TICK_S)
            return self._work()
        finally:
            self._fitness.end()

    def _work(self) -> int:
        """All jobs, as many at a time as there are slots; their measurements take turns."""
        running: list[_Running] = []
        paths, status = deque(self._spool.job_files()), DONE
        while paths or running:
            if paths and (why := self._why_no_more()):
                logger.log(logging.ERROR if self._is_unfit else logging.INFO, "%s", why)
                paths.clear()
            if paths and len(running) < self._slots:
                try:
                    if begun := self._begun(paths.popleft()):
                        running.append(begun)
                except DataError as error:
                    logger.error("left out: %s", error)
                    status = SOME_LEFT
                continue
            for job in [job for job in running if job.has_ended(is_killed=self._stops > 1)]:
                running.remove(job)
                lineage.sweep([*self._fitness.pids, *(other.pid for other in running)])
                self._end(job)
            time.sleep(_TICK_S)
        return NOT_FIT if self._is_unfit else status

    def _why_no_more(self) -> str:
        """Why no other job is begun; empty if one may be."""
        if self._stops:
            return "stopped; the jobs that are left can be done by another call"
        broken = self._fitness.reason()
        self._is_unfit = bool(broken)
        return f"no more jobs are taken: {broken}" if broken else ""

    def _begun(self, path: Path) -> _Running | None:
        """The job of a file, at work; None if it is over, or somebody is at it."""
        job = self._spool.job(path)
        stack = ExitStack()
        with stack:
            file = stack.enter_context(self._spool.held(job.name))
            if file is None:
                return None
            state = SlotState()
            state.begin(job.kind, job.job_id, job.attempt)
            kept = self._supervisor.cache_folder / "spool" / f"offline-{os.getpid()}-{job.name}"
            context = JobContext(
                runner=self._runner,
                supervisor=self._supervisor,
                state=state,
                stream=EventFile(file),
                spool=Spool(kept),
                evaluate=self._evaluate,
            )
            is_ready = self._ready and job.kind is JobKind.EVALUATION
            oracles = Oracles() if is_ready else None
            process = _fork.Process(target=_child, args=(job, context, oracles, os.getpid()))
            logger.info("%s begins", job.name)
            process.start()
            return _Running(job, context, process, stack.pop_all())

    def _end(self, running: _Running) -> None:
        """Take leave of a job whose process is gone: tell what was lost, and let the file go."""
        job, state, stream = running.job, running.context.state, running.context.stream
        running.context.spool.flush(stream)
        if state.lost and self._stops < 2:
            cause = running.cause
            payload = {"runner": self._runner, "reason": cause}
            stream.send(
                Event(
                    job=job.kind,
                    job_id=job.job_id,
                    attempt=job.attempt,
                    seq=state.next_seq(),
                    kind=EventKind.LOST,
                    payload=payload,
                )
            )
            logger.error("lost %s: %s", job.name, cause)
        running.context.spool.close()
        running.held.close()

    def _ask_to_stop(self, *_: object) -> None:
        self._stops += 1


def _child(job: SpooledJob, context: JobContext, oracles: Oracles | None, parent: int) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the parent answers them
    lineage.die_with(parent)
    lineage.adopt_orphans()
    if oracles is not None:
        oracles.start_ahead(context.supervisor)  # while the kernel is built
        evaluate = functools.partial(context.evaluate, oracles=oracles)
        context = dataclasses.replace(context, evaluate=evaluate)
    try:
        outcome = _FUNCTIONS[job.kind](job.request, context=context)
    except DataError:
        return  # it has been reported
    finally:
        if oracles is not None:
            oracles.close()
    logger.info("%s: %s", job.name, outcome or "done")

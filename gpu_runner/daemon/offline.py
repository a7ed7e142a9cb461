"""Works through a spool: the jobs of a folder, on a host that reaches no site."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
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
    """Do all jobs of the spool that are not done, one after another; return the exit status.

    Several hosts may work at one folder: a job is locked while it is at work. One that was ended
    in the middle is begun again. A file that cannot be read is named, and the others are done.
    SIGTERM lets the current job finish; a second one ends it. Raises `DataError` for a folder that
    is no spool, or one of another device.
    """
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("gpu_runner").setLevel(logging.INFO)
    return _Worker(SpoolFolder(folder), config, evaluate, probe_jail()).run()


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
        self._kept = Spool(config.cache_folder / "spool" / f"offline-{os.getpid()}")
        self._stops = 0

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
        status = DONE
        for path in self._spool.job_files():
            if self._stops:
                logger.info("stopped; the jobs that are left can be done by another call")
                break
            if broken := self._fitness.reason():
                logger.error("no more jobs are taken: %s", broken)
                return NOT_FIT
            try:
                job = self._spool.job(path)
                with self._spool.held(job.name) as file:
                    if file is not None:
                        self._do(job, file)
            except DataError as error:
                logger.error("left out: %s", error)
                status = SOME_LEFT
        return status

    def _do(self, job: SpooledJob, file: IO[bytes]) -> None:
        stream, state = EventFile(file), SlotState()
        state.begin(job.kind, job.job_id, job.attempt)
        context = JobContext(
            runner=self._runner,
            supervisor=self._supervisor,
            state=state,
            stream=stream,
            spool=self._kept,
            evaluate=self._evaluate,
        )
        logger.info("%s begins", job.name)
        cause = self._run_apart(job, context)
        self._kept.flush(stream)
        if state.lost and self._stops < 2:
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
        lineage.sweep(self._fitness.pids)

    def _run_apart(self, job: SpooledJob, context: JobContext) -> str:
        """Do the job in a process of its own; why it died, if it did."""
        process = _fork.Process(target=_child, args=(job, context, os.getpid()))
        process.start()
        deadline = time.monotonic() + job.timeout_s
        while process.is_alive() and self._stops < 2 and time.monotonic() < deadline:
            process.join(_TICK_S)
        late = process.is_alive() and self._stops < 2
        if process.is_alive():
            process.kill()
        process.join()
        status = process.exitcode
        process.close()
        return "it took longer than the job may" if late else f"its process died (status {status})"

    def _ask_to_stop(self, *_: object) -> None:
        self._stops += 1


def _child(job: SpooledJob, context: JobContext, parent: int) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the parent answers them
    lineage.die_with(parent)
    lineage.adopt_orphans()
    try:
        outcome = _FUNCTIONS[job.kind](job.request, context=context)
    except DataError:
        return  # it has been reported
    logger.info("%s: %s", job.name, outcome or "done")

"""Facts that a runner reports through the Redis stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpu_runner.data import codec


class JobKind(StrEnum):
    """What a runner works at."""

    EVALUATION = "evaluation"
    CHECK = "check"  # of a task
    BASELINES = "baselines"  # of a task, measured apart


class EventKind(StrEnum):
    """Kinds of event; the comment says what the payload holds."""

    STARTED = "started"  # {"runner": name, "at": unix seconds}
    STAGE = "stage"  # {"stage": Stage, "state": "running" | "done", "elapsed_s", "detail": str}
    # of another job than an evaluation: {"detail": str, "elapsed_s"}
    ALIVE = "alive"  # {"runner": name}: still at work; every few seconds
    FINISHED = "finished"  # {"result": EvaluationResult}
    # of another job: {"report": what it made}, or {"reason": str} where there is none
    LOST = "lost"  # {"runner": name, "reason": str}: the work-horse died; the job may be retried
    RUNNER = "runner"  # RunnerState: the runner's heartbeat


@dataclass(frozen=True, kw_only=True)
class Event:
    """One fact of a job, identified by (job_id, attempt, seq); `seq` counts from 1 in each attempt.

    A runner's own (RUNNER) has no job, an empty id, attempt 0 and seq 0.
    """

    job: JobKind | None = None
    job_id: str
    attempt: int
    seq: int
    kind: EventKind
    payload: Mapping[str, Any]


def decode_event(document: Any) -> Event:
    """The event; raises `DataError`.

    A runner of an earlier version does not say what kind of job it is of: `job` is None then.
    """
    if isinstance(document, Mapping) and "evaluation_id" in document:
        document = {"job_id": document["evaluation_id"], **document}
        del document["evaluation_id"]
    return codec.decode(Event, document)


@dataclass(frozen=True, kw_only=True)
class RunnerState:
    """A runner's heartbeat. `boot_id` changes whenever the daemon is started anew."""

    name: str
    boot_id: str
    device: str
    device_kind: str
    device_name: str
    state: str  # "ready" | "draining" | "stopped" | "unfit"
    reason: str  # why it is not ready, or what is weaker than it should be (no jail)
    jail: bool
    current: tuple[str, ...]  # ids of the jobs at work
    builds: int  # jobs that may build at the same time
    version: str
    at: float  # unix seconds
    compiler: str = ""  # which sources are built with, such as "nvcc 13.0 with g++ 12.2.0"
    architecture: str = ""  # and what for, such as "sm_90a"
    packages: Mapping[str, str] = field(default_factory=dict)  # for Python kernels, with versions
    sensors: Mapping[str, float] = field(default_factory=dict)  # by `SENSORS`, as far as known


SENSORS = ("temperature_c", "clock_mhz", "memory_clock_mhz", "power_w")
"""What a heartbeat may tell of its device; a sensor that a host does not have is left out."""

STEERING = "kbench:steering"
"""Redis hash in which a runner finds, under its name, why it may take no work; or nothing."""

REFUSED = "refused: "
"""With this begins the failure of an RQ job that a runner would not run."""

EVENT_STREAM = "kbench:events"

"""Facts that a runner reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class EventKind(StrEnum):
    """Kinds of event; the comment says what the payload holds."""

    STARTED = "started"  # {"runner": its own name, "at": unix seconds}
    STAGE = "stage"  # {"stage": Stage, "state": "running" | "done", "elapsed_s", "detail": str}
    # of another job than an evaluation: {"detail": str, "elapsed_s"}
    ALIVE = "alive"  # {}: still at work; every few seconds
    FINISHED = "finished"  # {"result": EvaluationResult}
    # of another job: {"report": what it made}, or {"reason": str} where there is none
    LOST = "lost"  # {"reason": str}: the work-horse died; the job may be retried
    RUNNER = "runner"  # RunnerState: the runner's heartbeat


@dataclass(frozen=True, kw_only=True)
class Event:
    """One fact of a job, identified by (job_id, attempt, seq); `seq` counts from 1 in each attempt.

    job: the job's kind, as `Order` has it. A runner's own event (RUNNER) has none, an empty id,
    attempt 0 and seq 0.
    """

    job: str | None = None
    job_id: str
    attempt: int
    seq: int
    kind: EventKind
    payload: Mapping[str, object]


ENDS = (EventKind.FINISHED, EventKind.LOST)
"""Kinds of event after which nothing comes of an attempt."""


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
    current: tuple[str, ...]  # names of the jobs at work, as in `JobName`
    builds: int  # jobs that may build at the same time
    version: str
    at: float  # unix seconds
    compiler: str = ""  # which sources are built with, such as "nvcc 13.0 with g++ 12.2.0"
    architecture: str = ""  # and what for, such as "sm_90a"
    packages: Mapping[str, str] = field(default_factory=dict)  # see `packages`
    sensors: Mapping[str, float] = field(default_factory=dict)  # by `SENSORS`, as far as known


SENSORS = ("temperature_c", "clock_mhz", "memory_clock_mhz", "power_w")
"""What a heartbeat may tell of its device; a sensor that a host does not have is left out."""

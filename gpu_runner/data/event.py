"""Facts that a runner reports through the Redis stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class EventKind(StrEnum):
    """Kinds of event; the comment says what the payload holds.

    An evaluation's events carry its id and attempt, and `seq` counts from 1 in each attempt. So do
    those of a task's check, whose id stands in the place of an evaluation's; their payloads are
    the same but for STAGE and FINISHED. A runner's events (`runner`) have an empty evaluation id,
    attempt 0, and seq 0.
    """

    STARTED = "started"  # {"runner": name, "at": unix seconds}
    STAGE = "stage"  # {"stage": Stage, "state": "running" | "done", "elapsed_s", "detail": str}
    # of a check: {"detail": str, "elapsed_s"}
    ALIVE = "alive"  # {"runner": name}: still at work; every few seconds
    FINISHED = "finished"  # {"result": EvaluationResult}
    # of a check: {"report": soundness report}, or {"reason": str} where there is none
    LOST = "lost"  # {"runner": name, "reason": str}: the work-horse died; the job may be retried
    RUNNER = "runner"  # RunnerState: the runner's heartbeat


@dataclass(frozen=True, kw_only=True)
class Event:
    """One fact, identified by (evaluation_id, attempt, seq)."""

    evaluation_id: str
    attempt: int
    seq: int
    kind: EventKind
    payload: Mapping[str, Any]


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
    current: tuple[str, ...]  # evaluation ids at work
    builds: int  # jobs that may build at the same time
    version: str
    at: float  # unix seconds
    compiler: str = ""  # which sources are built with, such as "nvcc 13.0 with g++ 12.2.0"
    architecture: str = ""  # and what for, such as "sm_90a"


REFUSED = "refused: "
"""With this begins the failure of an RQ job that a runner would not run."""

EVENT_STREAM = "kbench:events"

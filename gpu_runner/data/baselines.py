"""The request for a task's baselines on a device, and what comes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gpu_runner.data import codec
from gpu_runner.data.evaluation import Measurement
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Direction


@dataclass(frozen=True, kw_only=True)
class BaselineRequest:
    """Everything that a runner needs to know to measure a task's baselines apart.

    device: name of the device's queue, such as "cpu" or "nvidia-h200".
    """

    KIND: ClassVar[str] = "baselines"

    measurement_id: str
    task: Task
    direction: Direction
    device: str
    attempt: int = 1
    schema_version: int = codec.SCHEMA_VERSION


@dataclass(frozen=True, kw_only=True)
class BaselineReport:
    """Baselines by workload and name, in ns, and why one is missing.

    pending: names of those that failed, though another try may succeed. anchor_ns: the anchor
    kernel's time on a GPU when they were measured; it carries them to another moment (see
    `carried`).
    """

    task_digest: str
    baselines: Mapping[str, Mapping[str, Measurement]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    anchor_ns: float | None = None

    def at(self, anchor_ns: float | None) -> Mapping[str, Mapping[str, Measurement]]:
        """The baselines as they would be at another moment, by the anchor's time of then."""
        return {
            workload: {
                name: carried(measurement, self.anchor_ns, anchor_ns)
                for name, measurement in of_workload.items()
            }
            for workload, of_workload in self.baselines.items()
        }


_FAILURES = (
    (r"no working torch\.compile", NO_COMPILER := "this runner has no working torch.compile"),
    (
        r"(wrong by|outside) the task's own tolerance",
        "its output is outside the task's own tolerance",
    ),
    (
        r"not supported|cannot find a working|no compiler|compiler.*not found|invalidcxxcompiler",
        NO_COMPILER,
    ),
    (r"no module named", "a package that it needs isn't installed on this runner"),
    (r"no available kernel|NotImplementedError", "the library can't do this here"),
    (r"memory", "it ran out of memory"),
    (r"time limit|too long|longer than|timed out|took more than", "it took too long"),
    (r"torch\.compile|inductor|dynamo|triton|backendcompiler", "torch.compile failed"),
    (r"killed", "its process was killed"),
)
"""What an error of a baseline says, and how it is told; the first that is found holds."""


def failure(error: str) -> str:
    """Why a baseline failed, in one of a few phrases: its own words could hold a hidden size."""
    found = (told for sign, told in _FAILURES if re.search(sign, error, re.IGNORECASE))
    return next(found, "it failed on this runner")


ANCHOR_DEAD_BAND = 0.02
"""Relative changes of the anchor below this are its own noise, and correct nothing."""


def carried(then: Measurement, then_ns: float | None, now_ns: float | None) -> Measurement:
    """A measurement as it would be at the device's speed of now, by two times of the anchor.

    The same where one of them is not known.
    """
    if not then_ns or not now_ns or abs(now_ns / then_ns - 1) <= ANCHOR_DEAD_BAND:
        return then
    ratio = now_ns / then_ns
    return Measurement(
        time_ns=then.time_ns * ratio,
        low_ns=then.low_ns * ratio,
        high_ns=then.high_ns * ratio,
        calls=then.calls,
    )

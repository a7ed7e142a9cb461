"""Times the stages of an evaluation and tells whoever listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpu_runner.data.evaluation import StageTime
from gpu_runner.data.verdict import Stage

Report = Callable[[Stage, str, str], None]
"""Called with a stage, its state ("running" or "done") and a detail for a person."""

_INTERVAL_S = 0.5  # chosen: nobody reads faster


def calls_so_far(done: int, of: int, calls: int) -> str:
    """What a person reads while calls are made: `done` of `of` workloads need no more."""
    return f"{calls} {'call' if calls == 1 else 'calls'}, {done} of {of} workloads done"


class Timeline:
    """Stages in the order in which they ended; a stage that comes again adds to its time."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._began = time.monotonic()
        self._times: dict[Stage, StageTime] = {}
        self._reported_at = 0.0

    @contextmanager
    def stage(self, stage: Stage, detail: str = "", *, told: bool = True) -> Iterator[None]:
        """told: whether its beginning and end are, which say how long it took."""
        started = time.monotonic()
        if told:
            self._report(stage, "running", detail)
        try:
            yield
        finally:
            known = self._times.get(stage)
            duration = time.monotonic() - started + (known.duration_s if known else 0.0)
            began = known.started_s if known else started - self._began
            self._times[stage] = StageTime(stage=stage, started_s=began, duration_s=duration)
            if told:
                self._report(stage, "done", detail)

    def progress(self, stage: Stage, detail: str) -> None:
        """Tell how far a running stage is, at most twice a second."""
        now = time.monotonic()
        if now - self._reported_at >= _INTERVAL_S:
            self._reported_at = now
            self._report(stage, "running", detail)

    def tell(self, stage: Stage, state: str, detail: str) -> None:
        """Say so now, whatever a stage's beginning and end say."""
        self._report(stage, state, detail)

    def times(self) -> tuple[StageTime, ...]:
        return tuple(self._times.values())

"""The site's own RQ workers, and all that they run: steps of runs, and calls."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

from django.utils import timezone
from rq import Worker
from rq.job import Job

from runs_app.advice.services import settle_call
from runs_app.llm import client
from runs_app.messaging import queues
from runs_app.notices.delivery import deliver
from runs_app.optimisation.services.advance import advance_run as take_step
from runs_app.optimisation.services.calls import answer_call as send_call

_PR_SET_PDEATHSIG = 1


def advance_run(run_id: str) -> int:
    """Take a run's next step."""
    queues.advance_begins(run_id)
    return take_step(run_id=run_id, now=timezone.now())


def answer_call(call_id: str) -> bool:
    """Send a call that waits, and read its answer if it is a judgement of a task."""
    sent = send_call(call_id=call_id)
    settle_call(call_id=call_id)
    return sent


def deliver_message(delivery_id: str) -> bool:
    """Try once to deliver a message."""
    return deliver(delivery_id=int(delivery_id), now=timezone.now())


assert client, "loaded here, so that no work-horse has to: that takes a second each time"

ALLOWED: dict[str, Callable[..., Any]] = {
    queues.ADVANCE_FUNCTION: advance_run,
    queues.CALL_FUNCTION: answer_call,
    queues.DELIVER_FUNCTION: deliver_message,
}


class SiteJob(Job):
    """A job that never imports anything by a name which came through Redis."""

    success_callback = None
    failure_callback = None
    stopped_callback = None

    @property
    def func(self) -> Callable[..., Any]:
        """The function of that name, if it is allowed; raises `ValueError`."""
        if self.func_name not in ALLOWED or self.instance is not None:
            raise ValueError(f"{self.func_name!r} is not a function that this worker runs")
        return ALLOWED[self.func_name]


class SiteWorker(Worker):
    """A worker that stops with its pool: left alone, it would take jobs of another installation.

    It finishes the job that it has begun. Nothing is scheduled here, so it starts no scheduler.
    """

    def work(self, *args: Any, **options: Any) -> bool:
        """Work until told to stop, or until the pool's process has ended."""
        pool = multiprocessing.parent_process()
        if pool is not None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != pool.pid:
                return False
        return super().work(*args, **{**options, "with_scheduler": False})

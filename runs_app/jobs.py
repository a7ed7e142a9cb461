"""The site's own RQ workers, and all that they run: steps of runs, calls, and the like."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from typing import Any

from django.utils import timezone
from rq import Queue, Worker
from rq.job import Job
from rq.serializers import JSONSerializer

from runs_app.core import features
from runs_app.core.messaging import queues
from runs_app.optimiser.llm import client
from runs_app.optimiser.services.advance import advance_run as take_step
from runs_app.optimiser.services.calls import answer_call as send_call
from runs_app.optimiser.signals import call_done

_PR_SET_PDEATHSIG = 1


def advance_run(run_id: str) -> int:
    """Take a run's next step."""
    queues.advance_begins(run_id)
    return take_step(run_id=run_id, now=timezone.now())


def answer_call(call_id: str) -> bool:
    """Send a call that waits, and tell who reads its answer."""
    sent = send_call(call_id=call_id)
    call_done.send(sender=None, call_id=call_id)
    return sent


assert client, "loaded here, so that no work-horse has to: that takes a second each time"

ALLOWED: dict[str, Callable[..., object]] = {
    queues.ADVANCE_FUNCTION: advance_run,
    queues.CALL_FUNCTION: answer_call,
    **{name: job for module in features.modules("jobs") for name, job in module.JOBS.items()},
}


class RefusedJob(Exception):
    """A job asks for something that this worker doesn't do; the message says what."""


class SiteJob(Job):
    """A plain call of one of `ALLOWED`.

    Whoever can write to Redis could ask for anything else: code that is imported by its name, or
    requests to addresses that only this host reaches.
    """

    success_callback = None
    failure_callback = None
    stopped_callback = None
    should_retry = False  # the site's rows say what is tried again

    @property
    def func(self) -> Callable[..., object]:
        """The function of that name; raises `RefusedJob` for anything but a plain call of it."""
        if self.func_name not in ALLOWED or self.instance is not None:
            raise RefusedJob(f"{self.func_name!r} is not a function that this worker runs")
        if any(
            (self._success_callback_name, self._failure_callback_name, self._stopped_callback_name)
        ):
            raise RefusedJob("jobs on this worker can't have callbacks")
        if self.webhooks:
            raise RefusedJob("jobs on this worker can't have webhooks")
        return ALLOWED[self.func_name]

    def send_webhooks(self, *_: object, **__: object) -> None:
        """Call nobody, not even about a job that is refused."""


class SiteWorker(Worker):
    """A worker that runs `SiteJob`s, and stops with its pool.

    Left alone, it would take jobs of another installation. It finishes the job that it has begun.
    Nothing is scheduled here, so it starts no scheduler.
    """

    def __init__(self, queues: Iterable[Queue | str], *args: Any, **options: Any) -> None:
        """Work on the queues of those names.

        A pool hands over queues that would read pickles and call callbacks, so new ones are made.
        """
        names = [each if isinstance(each, str) else each.name for each in queues]
        strict = {"job_class": SiteJob, "serializer": JSONSerializer}
        super().__init__(names, *args, **{**options, **strict})

    def work(self, *args: Any, **options: Any) -> bool:
        """Work until told to stop, or until the pool's process has ended."""
        pool = multiprocessing.parent_process()
        if pool is not None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != pool.pid:
                return False
        return super().work(*args, **{**options, "with_scheduler": False})

"""Stands in for a runner: takes jobs from the queue and tells of them as a test wishes."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import redis
from rq import Queue
from rq.serializers import JSONSerializer

from gpu_runner.daemon.events import EventStream
from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.event import Event, EventKind, JobKind, RunnerState
from gpu_runner.data.queue import Urgency, queue_name
from gpu_runner.data.verdict import Stage, Verdict
from tests.browser import invented

NAME = "fake-runner"


class FakeRunner:
    """One runner of the CPU; every step happens when the test asks for it."""

    def __init__(self, redis_url: str) -> None:
        """Connect to the site's Redis."""
        self._redis = redis.Redis.from_url(redis_url)
        self._stream = EventStream(self._redis)
        self._queues = {
            urgency: Queue(
                queue_name("cpu", urgency), connection=self._redis, serializer=JSONSerializer
            )
            for urgency in Urgency
        }
        self._seq = 0
        self.request: EvaluationRequest | None = None

    def beat(self) -> None:
        """Say that the runner is there."""
        state = RunnerState(
            name=NAME,
            boot_id="boot-1",
            device="cpu",
            device_kind="cpu",
            device_name="CPU",
            state="ready",
            reason="",
            jail=True,
            current=(),
            builds=1,
            version="0.1.0",
            at=time.time(),
        )
        self._stream.send(
            Event(job_id="", attempt=0, seq=0, kind=EventKind.RUNNER, payload=codec.encode(state))
        )

    def take(self, timeout_s: float = 60, urgency: Urgency = Urgency.PEOPLE) -> EvaluationRequest:
        """Take the next job and say so."""
        deadline = time.monotonic() + timeout_s
        queue = self._queues[urgency]
        while not (jobs := queue.jobs):
            assert time.monotonic() < deadline, "no job came into the queue"
            time.sleep(0.05)
        self.request = codec.decode(EvaluationRequest, jobs[0].args[0])
        queue.remove(jobs[0])
        self._seq = 0
        self._tell(EventKind.STARTED, {"runner": NAME, "at": time.time()})
        return self.request

    def finish_all(self) -> None:
        """Take and end everything that waits, so that nothing is left for the next test."""
        for urgency, queue in self._queues.items():
            while urgency is not Urgency.BASELINES and queue.jobs:
                self.take(urgency=urgency)
                self.finish(Verdict.CORRECT)
        self._queues[Urgency.BASELINES].empty()

    def stage(self, stage: Stage, state: str = "running", detail: str = "") -> None:
        """Report a stage."""
        payload = {"stage": stage.value, "state": state, "elapsed_s": 0.0, "detail": detail}
        self._tell(EventKind.STAGE, payload)

    def finish(self, verdict: Verdict, level: float = 1.5, **changes: Any) -> None:
        """End the evaluation with an invented result, `level` times as fast as a baseline.

        `changes` replace fields of the result.
        """
        assert self.request is not None, "take a job first"
        invention = invented.result(random.Random(1), self.request, verdict, level)
        result = replace(invention, **changes)
        self._tell(EventKind.FINISHED, {"result": codec.encode(result)})

    def _tell(self, kind: EventKind, payload: dict[str, object]) -> None:
        assert self.request is not None, "take a job first"
        self._seq += 1
        event = Event(
            job=JobKind.EVALUATION,
            job_id=self.request.evaluation_id,
            attempt=self.request.attempt,
            seq=self._seq,
            kind=kind,
            payload=payload,
        )
        self._stream.send(event)

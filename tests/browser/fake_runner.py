"""Stands in for a runner of another host: asks for jobs and tells of them as a test wishes."""

from __future__ import annotations

import contextlib
import random
import secrets
import time
from dataclasses import replace
from typing import Any

import redis
from rq import Queue
from rq.serializers import JSONSerializer

from gpu_runner.daemon.sources.contract import Away
from gpu_runner.daemon.sources.https_source import HttpsSource
from gpu_runner.data import codec
from gpu_runner.data.evaluation import EvaluationRequest
from gpu_runner.data.event import Event, EventKind, RunnerState
from gpu_runner.data.order import Ask, Order
from gpu_runner.data.queue import Urgency, queue_name
from gpu_runner.data.verdict import Stage, Verdict
from tests.browser import invented

NAME, BOOT = "fake-runner", "boot-1"


class FakeRunner:
    """One runner of the CPU; every step happens when the test asks for it."""

    def __init__(self, site: str, token: str, redis_url: str) -> None:
        """Speak with the site over HTTP. In the runners' Redis it only looks for what waits."""
        self._source = HttpsSource(site, token)
        self._redis = redis.Redis.from_url(redis_url)
        self._queues = {
            urgency: Queue(
                queue_name("cpu", urgency), connection=self._redis, serializer=JSONSerializer
            )
            for urgency in Urgency
        }
        self._seq = 0
        self._order: Order | None = None
        self.request: EvaluationRequest | None = None

    def beat(self) -> None:
        """Say that the runner is there, and what it works at."""
        state = RunnerState(
            name=NAME,
            boot_id=BOOT,
            device="cpu",
            device_kind="cpu",
            device_name="CPU",
            state="ready",
            reason="",
            jail=True,
            current=(str(self._order.name),) if self._order else (),
            builds=1,
            version="0.1.0",
            at=time.time(),
        )
        payload = codec.encode(state)
        self._source.send(
            Event(job_id="", attempt=0, seq=0, kind=EventKind.RUNNER, payload=payload)
        )

    def take(self, timeout_s: float = 60, urgency: Urgency = Urgency.PEOPLE) -> EvaluationRequest:
        """Take the next job and say so."""
        ask = Ask(
            runner=NAME,
            boot_id=BOOT,
            device="cpu",
            urgencies=(urgency,),
            ticket=secrets.token_hex(16),
        )
        deadline = time.monotonic() + timeout_s
        order = None
        while order is None:
            assert time.monotonic() < deadline, "no job came"
            with contextlib.suppress(Away):
                order = self._source.take(ask)
        self._order = order
        self.request = codec.decode(EvaluationRequest, order.request)
        self._seq = 0
        self._tell(EventKind.STARTED, {"runner": NAME, "at": time.time()})
        return self.request

    def finish_all(self) -> None:
        """Take and end everything that waits, so that nothing is left for the next test."""
        for urgency, queue in self._queues.items():
            while urgency is not Urgency.BASELINES and queue.job_ids:
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
        self._order = None

    def _tell(self, kind: EventKind, payload: dict[str, object]) -> None:
        assert self._order is not None, "take a job first"
        self._seq += 1
        event = Event(
            job=self._order.kind,
            job_id=self._order.job_id,
            attempt=self._order.attempt,
            seq=self._seq,
            kind=kind,
            payload=payload,
        )
        self._source.send(event)

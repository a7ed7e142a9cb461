"""Evaluations whose times do not matter, several at once, each with its own cache and lock."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import Oracle
from gpu_runner.supervisor.runner.pool import Oracles

MOST = 4
MOST_EVALUATIONS = 100
"""Of one oracle: its jail limits the processor time that it may use in all."""


def selected(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """Values of a parameter in those tests of the requesting module that will run."""
    found = []
    for item in request.session.items:
        values = getattr(getattr(item, "callspec", None), "params", {})
        if parameter in values and getattr(item, "module", None) is request.module:
            found.append(values[parameter])
    return found


def processes_left(folder: Path) -> list[str]:
    """Processes that still run something out of a folder of caches."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in command:
                found.append(command)
    return found


class OneOracle(Oracles):
    """Lends one oracle to many evaluations of all tasks on a CPU: PyTorch is imported once.

    For tests that are about kernels, whose tasks are the built-in ones: a process that has run one
    task's code is not to judge another's elsewhere.
    """

    def __init__(self) -> None:
        """Hold none yet."""
        super().__init__()
        self._kept: tuple[SupervisorConfig, Oracle] | None = None
        self._evaluations = 0

    @contextlib.contextmanager
    def lend(self, config: SupervisorConfig) -> Iterator[Oracle]:
        """The oracle of the evaluation before, where it can go on."""
        known = self._kept
        usable = known and known[0] == config and known[1].running
        if known is None or not usable or self._evaluations >= MOST_EVALUATIONS:
            self._close_kept()
            known = self._kept = (config, self.taken_ahead(config) or Oracle(config))
        self._evaluations += 1
        try:
            yield known[1]
        finally:
            if config.kind is DeviceKind.CUDA or known[1].failed:
                self._close_kept()

    def _close_kept(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
        self._kept, self._evaluations = None, 0

    def close(self) -> None:
        """End all that are there."""
        self._close_kept()
        super().close()


class SideBySide:
    """Starts evaluations in the background. Use as a context manager.

    Those of one task follow each other, and the tasks come in the order in which they are asked
    for: otherwise the first test would wait for nearly all of them.
    """

    def __init__(
        self, requests: Mapping[str, EvaluationRequest], config: SupervisorConfig, folder: Path
    ) -> None:
        """Begin at once; caches are made in `folder`."""
        workers = min(MOST, os.cpu_count() or 1)
        self._hosts: queue.SimpleQueue[tuple[SupervisorConfig, Oracles]] = queue.SimpleQueue()
        for index in range(workers):
            own = dataclasses.replace(config, cache_folder=folder / str(index))
            self._hosts.put((own, OneOracle()))
        self._pool = ThreadPoolExecutor(max_workers=workers)
        tasks = list(dict.fromkeys(request.task.name for request in requests.values()))

        def place(request: EvaluationRequest) -> int:
            return tasks.index(request.task.name)

        self._futures: dict[str, Future[EvaluationResult]] = {
            name: self._pool.submit(self._evaluate, request)
            for name, request in sorted(requests.items(), key=lambda item: place(item[1]))
        }

    def __enter__(self) -> SideBySide:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Start nothing more, and wait for what has begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        while not self._hosts.empty():
            self._hosts.get()[1].close()

    def result(self, name: str) -> EvaluationResult:
        """The result of one evaluation, as soon as it is there."""
        return self._futures[name].result()

    def _evaluate(self, request: EvaluationRequest) -> EvaluationResult:
        config, oracles = self._hosts.get()
        try:
            return evaluate(request, config, oracles=oracles)
        finally:
            self._hosts.put((config, oracles))

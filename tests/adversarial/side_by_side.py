"""Evaluations whose times do not matter, several at once, each with its own cache and lock."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from gpu_runner.data.evaluation import EvaluationRequest, EvaluationResult
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import Oracle
from gpu_runner.supervisor.oracle.pool import Oracles

MOST = 4


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
    """Lends one oracle to evaluations of all tasks: PyTorch is imported once.

    For tests that are about kernels, whose tasks are the built-in ones: a process that has run one
    task's code is not to judge another's elsewhere.
    """

    def __init__(self) -> None:
        """Hold none yet."""
        super().__init__(reuse=True)

    def _serving(self, key: tuple[str, SupervisorConfig]) -> Oracle | None:
        if self._kept is None or self._kept[0][1] != key[1]:
            return None
        return super()._serving(self._kept[0])


class SideBySide:
    """Starts evaluations in the background, in order. Use as a context manager."""

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
        self._futures: dict[str, Future[EvaluationResult]] = {
            name: self._pool.submit(self._evaluate, request)
            for name, request in sorted(requests.items(), key=lambda item: item[1].task.name)
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

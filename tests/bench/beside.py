"""Compilers that are kept busy beside a measurement, as builds of a busy runner are."""

from __future__ import annotations

import dataclasses
import itertools
import multiprocessing
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from uuid import uuid4

from gpu_runner.data.verdict import Mode, Verdict
from gpu_runner.supervisor.evaluate import evaluate
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.bench.evaluations import Entry, request

_PATIENCE_S = 30.0


class Beside:
    """How many builds were made beside the measurement so far; `failed` of them did not build."""

    def __init__(self, made: Synchronized[int], failed: Synchronized[int]) -> None:
        """Counters that the compiling processes share."""
        self._made, self._failed = made, failed

    @property
    def made(self) -> int:
        """Builds that ended."""
        return self._made.value

    @property
    def failed(self) -> int:
        """Those of them that gave no library."""
        return self._failed.value


@contextmanager
def compilers_beside(
    count: int, entries: Sequence[Entry], config: SupervisorConfig
) -> Iterator[Beside]:
    """Keep `count` compilers busy with these entries until the block ends.

    Each in a process of its own, so that no lock is shared with the clock of the measurement, and
    each source made unique, so that no cache answers.
    """
    context = multiprocessing.get_context("spawn")
    made, failed, stop = context.Value("q", 0), context.Value("q", 0), context.Event()
    with tempfile.TemporaryDirectory(prefix="kbench-beside-") as folder:
        own = dataclasses.replace(config, cache_folder=Path(folder))
        processes = [
            context.Process(
                target=_compile,
                args=([*entries[i:], *entries[:i]], own, stop, made, failed),
                daemon=True,
            )
            for i in range(count)
        ]
        for process in processes:
            process.start()
        try:
            yield Beside(made, failed)
        finally:
            stop.set()
            for process in processes:
                process.join(_PATIENCE_S)
                process.terminate()  # its compiler, in its jail, dies with it


def _compile(
    entries: Sequence[Entry],
    config: SupervisorConfig,
    stop: Event,
    made: Synchronized[int],
    failed: Synchronized[int],
) -> None:
    for entry in itertools.cycle(entries):
        if stop.is_set():
            return
        source = f"{entry.source}\n// {uuid4()}\n"
        unique = dataclasses.replace(entry, source=source)
        result = evaluate(request(unique, config, Mode.COMPILE), config)
        for counter in (made, *([failed] if result.verdict is not Verdict.COMPILED else [])):
            with counter.get_lock():
                counter.value += 1

"""The calls of a Python module that come before all others: what they compile is kept for these."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.build.build import LIBRARY_LIMIT_BYTES
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target

_TOO_LARGE = f"what its calls compile takes more than {LIBRARY_LIMIT_BYTES >> 20} MiB"


class Rehearsal:
    """Rehearses calls, each time in a process of its own; `close` forgets what they compiled."""

    def __init__(self, bench: Bench) -> None:
        """`bench` is prepared with the workloads."""
        self._bench = bench
        self._archives = ExitStack()

    def close(self) -> None:
        """Give up the archives. They have no names, so a kill leaves nothing behind either."""
        self._archives.close()

    def of(self, target: Target, workloads: Sequence[Workload]) -> Target:
        """The target with what a call of each workload compiles; what printed is nobody's.

        Raises `FaultError` where a call fails, takes too long, or compiles too much.
        """
        file = tempfile.TemporaryFile()  # noqa: SIM115 - open until `close`: measurements read it
        archive = self._archives.enter_context(file).fileno()
        try:
            self._bench.run_rehearsal(replace(target, keeping=archive), workloads)
        except FaultError as error:
            raise _rehearsed(error) from None
        if not 0 < os.fstat(archive).st_size <= LIBRARY_LIMIT_BYTES:
            raise FaultError(Fault(Verdict.COMPILE_ERROR, _TOO_LARGE))
        return replace(target, library=Path(f"/proc/self/fd/{archive}"))


def _rehearsed(error: FaultError) -> FaultError:
    """The same fault, which says that nothing was measured yet."""
    fault = error.fault
    found = FaultError(replace(fault, reason=f"{fault.reason}, before anything was measured"))
    found.output = error.output
    return found

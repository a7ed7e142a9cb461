"""The calls of a Python module that come before all others: what they compile is kept for these."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
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
        self._folder = tempfile.TemporaryDirectory(prefix="kbench-rehearsed-")
        self._count = 0

    def close(self) -> None:
        """Remove the archives."""
        self._folder.cleanup()

    def of(self, target: Target, workloads: Sequence[Workload]) -> Target:
        """The target with what a call of each workload compiles; what printed is nobody's.

        Raises `FaultError` where a call fails, takes too long, or compiles too much.
        """
        self._count += 1
        archive = Path(self._folder.name, f"{self._count}.tar")
        descriptor = os.open(archive, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            self._bench.run_rehearsal(replace(target, keeping=descriptor), workloads)
        except FaultError as error:
            raise _rehearsed(error) from None
        finally:
            os.close(descriptor)
        if not 0 < archive.stat().st_size <= LIBRARY_LIMIT_BYTES:
            raise FaultError(Fault(Verdict.COMPILE_ERROR, _TOO_LARGE))
        return replace(target, library=archive)


def _rehearsed(error: FaultError) -> FaultError:
    """The same fault, which says that nothing was measured yet."""
    fault = error.fault
    found = FaultError(replace(fault, reason=f"{fault.reason}, before anything was measured"))
    found.output = error.output
    return found

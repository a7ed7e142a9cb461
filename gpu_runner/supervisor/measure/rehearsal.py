"""The calls of a Python module that come before all others: what they compile is kept for these."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from gpu_runner.data import archive, codec
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Verdict
from gpu_runner.supervisor.build.build import LIBRARY_LIMIT_BYTES, sealed_archive, workshop
from gpu_runner.supervisor.build.workshop import Workshop
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.host.files import unnamed, write_atomically
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.target import Target

_TOO_LARGE = f"the code that its calls compile takes more than {LIBRARY_LIMIT_BYTES >> 20} MiB"
_PUBLIC, _HIDDEN = "rehearsed.tar", "hidden.tar"
_COVERED = "covered.json"
"""In a kept archive: the workloads whose calls were rehearsed. No process gets it."""


class Rehearsal:
    """Rehearses calls, each time in a process of its own.

    What public and what hidden workloads compile is kept apart, beside what the import has: the
    next evaluation of the same text, on the same host, compiles only what is new to it.
    """

    def __init__(
        self, bench: Bench, config: SupervisorConfig, task: str, folder: Path | None
    ) -> None:
        """`bench` is prepared with the workloads of a task with this digest.

        folder: where archives are kept; None if nothing that was compiled earlier is to be used.
        """
        self._bench, self._config, self._task, self._folder = bench, config, task, folder
        self._archives = ExitStack()

    def close(self) -> None:
        """Give up the archives. They have no names, so a kill leaves nothing behind either."""
        self._archives.close()

    def forget(self) -> None:
        """Keep nothing of what was compiled: a process that had it has failed."""
        if self._folder is not None:
            for name in (_PUBLIC, _HIDDEN):
                (self._folder / name).unlink(missing_ok=True)

    def of(self, target: Target, workloads: Sequence[Workload], *, hidden: bool = False) -> Target:
        """The target with what a call of each workload compiles; what printed is nobody's.

        Raises `FaultError` where a call fails, takes too long, or compiles too much.
        """
        assert target.library is not None
        name = _HIDDEN if hidden else _PUBLIC
        files, covered = self._known(name)
        files = {**archive.read(target.library.read_bytes()), **files}
        missing = [w for w in workloads if self._name(w) not in covered]
        if missing:
            shop = workshop(self._config, hidden=hidden)
            files = self._rehearsed(replace(target, library=self._placed(files)), missing, shop)
            self._keep(name, files, {*covered, *map(self._name, missing)})
        return replace(target, library=self._placed(files))

    def _rehearsed(
        self, target: Target, workloads: Sequence[Workload], shop: Workshop
    ) -> dict[str, bytes]:
        with unnamed("rehearsal") as file:
            rehearsing = file.fileno(), shop
            try:
                self._bench.run_rehearsal(replace(target, rehearsing=rehearsing), workloads)
            except FaultError as error:
                raise _rehearsed(error) from None
            content = os.pread(file.fileno(), LIBRARY_LIMIT_BYTES + 1, 0)
        assert target.library is not None
        before, packed = archive.read(target.library.read_bytes()), b""
        if len(content) <= LIBRARY_LIMIT_BYTES:
            packed = sealed_archive(content, shop, before, self._config)
        if not 0 < len(packed) <= LIBRARY_LIMIT_BYTES:
            raise FaultError(Fault(Verdict.COMPILE_ERROR, _TOO_LARGE))
        return archive.read(packed)

    def _placed(self, files: dict[str, bytes]) -> Path:
        file = self._archives.enter_context(unnamed("archive", archive.written(files)))
        return Path(f"/proc/self/fd/{file.fileno()}")

    def _name(self, workload: Workload) -> str:
        return f"{self._task} {workload.name} {json.dumps(codec.encode(workload.parameters))}"

    def _known(self, name: str) -> tuple[dict[str, bytes], set[str]]:
        if self._folder is None or not (kept := self._folder / name).exists():
            return {}, set()
        if kept.stat().st_size > LIBRARY_LIMIT_BYTES // 2:  # leave room for what is new
            return {}, set()
        os.utime(kept)  # see `eviction`
        files = archive.read(kept.read_bytes())
        return files, set(json.loads(files.pop(_COVERED)))

    def _keep(self, name: str, files: dict[str, bytes], covered: set[str]) -> None:
        if self._folder is not None:
            told = {_COVERED: json.dumps(sorted(covered)).encode()}
            write_atomically(self._folder / name, archive.written({**files, **told}))


def _rehearsed(error: FaultError) -> FaultError:
    """The same fault, which says that nothing was measured yet."""
    fault = error.fault
    found = FaultError(replace(fault, reason=f"{fault.reason}, before anything was measured"))
    found.output = error.output
    return found

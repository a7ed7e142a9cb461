"""What first calls compile is kept for the next evaluation, hidden workloads' apart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from gpu_runner.data import archive
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure.rehearsal import Rehearsal
from gpu_runner.supervisor.runner.faults import FaultError
from gpu_runner.supervisor.runner.target import Target

A, B = (Workload(name=name, parameters={"N": n}) for name, n in (("a", 1), ("b", 2)))
HIDDEN = Workload(name="h", parameters={"N": 3}, hidden=True)


class Compiling:
    """A bench whose processes leave a file for each workload that they are called with."""

    def __init__(self, left: bytes = b"") -> None:
        self.calls: list[str] = []
        self.left = left

    def run_rehearsal(self, target: Target, workloads: Sequence[Workload]) -> str:
        assert target.rehearsing is not None
        assert target.library is not None
        files = archive.read(target.library.read_bytes())
        self.calls += [workload.name for workload in workloads]
        files |= {f"triton/{workload.name}": b"code" for workload in workloads}
        os.pwrite(target.rehearsing[0], self.left or archive.written(files), 0)
        return ""


@pytest.fixture
def target(tmp_path: Path) -> Target:
    prepared = tmp_path / "prepared.tar"
    prepared.write_bytes(archive.written({"extensions/key/own.so": b"ours"}))
    return Target(Abi.TORCH, Direction.FORWARD, library=prepared, source="{}")


def rehearsed(
    target: Target,
    *workloads: Workload,
    hidden: bool = False,
    anew: bool = False,
    bench: Compiling | None = None,
) -> tuple[set[str], list[str]]:
    """Files that the target has afterwards, and the workloads that were called."""
    assert target.library is not None
    bench, folder = bench or Compiling(), None if anew else target.library.parent
    config = SupervisorConfig(cache_folder=target.library.parent)
    with closing(Rehearsal(cast(Any, bench), config, "task", folder)) as rehearsal:
        found = rehearsal.of(target, workloads, hidden=hidden)
        assert found.library is not None
        return set(archive.read(found.library.read_bytes())), bench.calls


def test_only_what_is_new_is_called_again(target: Target) -> None:
    files, calls = rehearsed(target, A)
    assert {"extensions/key/own.so", "triton/a"} <= files
    assert calls == ["a"]
    files, calls = rehearsed(target, A, B)
    assert {"extensions/key/own.so", "triton/a", "triton/b"} <= files
    assert calls == ["b"]
    assert rehearsed(target, B, A)[1] == []
    assert rehearsed(target, A, anew=True)[1] == ["a"]


def test_public_processes_get_nothing_of_hidden_workloads(target: Target) -> None:
    assert "triton/h" in rehearsed(target, HIDDEN, hidden=True)[0]
    assert "triton/h" not in rehearsed(target, A)[0]
    files, calls = rehearsed(target, HIDDEN, hidden=True)
    assert ("triton/h" in files, calls) == (True, [])


def test_what_failed_is_forgotten(target: Target) -> None:
    rehearsed(target, A)
    assert target.library is not None
    config = SupervisorConfig(cache_folder=target.library.parent)
    Rehearsal(cast(Any, Compiling()), config, "task", target.library.parent).forget()
    assert rehearsed(target, A)[1] == ["a"]


def test_what_is_no_archive_is_refused(target: Target) -> None:
    with pytest.raises(FaultError, match="compile"):
        rehearsed(target, A, bench=Compiling(left=b"garbage" * 99))
    assert rehearsed(target, A)[1] == ["a"]

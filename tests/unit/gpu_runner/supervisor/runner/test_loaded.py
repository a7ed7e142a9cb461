"""What a process has mapped, what a result says of it, and what an audit makes of that."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_runner.data import archive
from gpu_runner.data.environment import Environment
from gpu_runner.data.integrity import AuditState, Check
from gpu_runner.data.solution import Solution
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language
from gpu_runner.supervisor.device import toolchain
from gpu_runner.supervisor.host.files import sealed
from gpu_runner.supervisor.runner.loaded import compared, foreign_suspicions, loaded
from gpu_runner.supervisor.runner.mapped import UNREADABLE, Mapped, Witness, mapped
from gpu_runner.supervisor.runner.target import Target

SOLUTION = Solution(source="def forward(): pass\n", language=Language.PYTHON)
WAITING = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(flush=True); sys.stdin.read()"


@pytest.fixture
def library() -> bytes:
    """A small library that any process can load."""
    maps = Path("/proc/self/maps").read_text().split()
    return Path(next(word for word in maps if "libm.so" in word)).read_bytes()


def seen(path: str, *descriptors: int, then: str = "pass") -> Mapped:
    """What a process has mapped that has loaded this library, and done this."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING.replace("print(", f"{then}; print("), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=descriptors,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        found = mapped(process.pid)
        process.kill()
    return found


def test_files_are_told_by_their_content_wherever_they_are(tmp_path: Path, library: bytes) -> None:
    own = tmp_path / "own.so"
    own.write_bytes(library)
    found = seen(str(own))
    assert found.own == {(str(own), archive.digest(library))}
    assert any(Path(path).name.startswith("libc.so") for path, _ in found.installed)
    with sealed("own", library) as file:
        (inside,) = seen(f"/proc/self/fd/{file.fileno()}", file.fileno()).own
    assert inside[1] == archive.digest(library)
    gone = f"import os; os.rename({str(own)!r}, {str(own)!r} + '2'); os.remove({str(own)!r} + '2')"
    ((_, digest),) = seen(str(own), then=gone).own
    assert digest == UNREADABLE


def test_no_more_is_read_than_a_toolchain_has(
    tmp_path: Path, library: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty files cost a process nothing; to read many of them takes long."""
    names = [str(tmp_path / f"{n}.so") for n in range(3)]
    for name in names:
        Path(name).write_bytes(library)
    monkeypatch.setattr("gpu_runner.supervisor.runner.mapped._LIMIT_BYTES", len(library) * 3 // 2)
    found = seen(names[0], then=f"[ctypes.CDLL(n) for n in {names[1:]}]").own
    assert {path for path, _ in found} == set(names)
    assert sorted(digest == UNREADABLE for _, digest in found) == [False, True, True]


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """A module with one extension that we compiled, and a cache."""
    prepared = tmp_path / "prepared.tar"
    files = {"extensions/key/own.so": b"ours", "triton/a.cubin": b"cubin", "numba/x": b"other"}
    prepared.write_bytes(archive.written(files))
    return Target(Abi.TORCH, Direction.FORWARD, library=prepared, source="{}")


def having(target: Target, *contents: bytes) -> Target:
    witness = Witness()
    own = frozenset((f"/tmp/{n}.so", archive.digest(c)) for n, c in enumerate(contents))
    witness.seen = Mapped(frozenset({("/usr/lib/libc.so.6", 9)}), own)
    return replace(target, witness=witness)


def test_code_that_no_compiler_made_is_suspicious(target: Target) -> None:
    assert list(foreign_suspicions(having(target, b"ours"))) == []
    for foreign in (b"mine", b"other"):  # what numba keeps is no library
        (found,) = foreign_suspicions(having(target, b"ours", foreign))
        assert found.check is Check.LOADED
        assert "'1.so'" in found.reason
    (hidden,) = foreign_suspicions(having(target, b"mine"), hidden=True)
    assert ".so" not in hidden.reason


def parts(target: Target, torch: str = "2.13") -> tuple[archive.Loaded, ...]:
    return loaded(SOLUTION, target, Environment(torch=torch), {"numba": "0.68"})


def test_a_result_says_each_part_of_what_ran(target: Target) -> None:
    found = {part.part: part.files for part in parts(having(target, b"ours"))}
    expected = {"source": 1, "extensions": 1, "triton": 1, "numba": 1, "installed": 1}
    assert {**expected, "toolchain": found["toolchain"]} == found
    assert "foreign" in {part.part for part in parts(having(target, b"mine"))}


def test_an_audit_says_whether_it_ran_the_same(target: Target, tmp_path: Path) -> None:
    now = parts(having(target, b"ours"))
    assert compared(now, now).state is AuditState.PASSED
    assert compared((), now).state is AuditState.SKIPPED
    assert compared(parts(having(target), torch="2.12"), now).state is AuditState.SKIPPED
    other = tmp_path / "other.tar"
    other.write_bytes(archive.written({"extensions/key/own.so": b"other"}))
    changed = compared(parts(replace(having(target), library=other)), now)
    assert changed.state is AuditState.SUSPICIOUS
    assert "extensions" in changed.reason
    other.write_bytes(archive.written({"extensions/key/own.so": b"ours", "triton/a.cubin": b"2"}))
    tuned = compared(parts(replace(having(target, b"ours"), library=other)), now)
    assert (tuned.state, "triton" in tuned.reason) == (AuditState.PASSED, True)


def test_when_nvcc_was_installed_matters_on_a_gpu_alone(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, state in ((DeviceKind.CUDA, AuditState.SKIPPED), (DeviceKind.CPU, AuditState.PASSED)):
        found = []
        for time in ("1", "2"):
            monkeypatch.setattr(toolchain, "installed_at", lambda time=time: {"nvcc": time})
            found.append(loaded(SOLUTION, target, Environment(device_kind=kind), {}))
        assert compared(*found).state is state

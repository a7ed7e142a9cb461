"""Every way out of a jail that the catalogue of cheats lists is tried, and none is open."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.jail import Jail
from gpu_runner.supervisor.host.leftovers import Process, process_table
from gpu_runner.supervisor.host.process import ChildProcess
from tests.adversarial.roads import (
    BOMBS,
    CLOSED,
    INIT,
    LIMITS,
    PLAIN_DEVICES,
    ROOT,
    build_hostile,
    found,
    run,
    try_all,
)
from tests.leftovers import Snapshot, left_behind, snapshot

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that tries everything."""
    return build_hostile(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def output(hostile: Path) -> list[str]:
    return try_all(hostile, Jail(limits=LIMITS, paths=[hostile]))


@pytest.fixture
def before() -> Snapshot:
    return snapshot()


@pytest.mark.parametrize("name", CLOSED)
def test_road_is_closed(name: str, output: list[str]) -> None:
    assert found(output, name) == [CLOSED[name]]


@pytest.mark.skipif(not ROOT, reason="a jail of an ordinary user has one user")
@pytest.mark.parametrize("name", INIT)
def test_the_jails_own_init_is_out_of_reach(name: str, output: list[str]) -> None:
    assert found(output, name) in (["EPERM"], ["EACCES"])


def test_it_holds_no_descriptor_but_its_own_streams(output: list[str]) -> None:
    assert found(output, "list:/proc/self/fd") == ["0 1 2 3"]  # 3 is the listing itself


def test_it_sees_no_device(output: list[str]) -> None:
    [devices] = found(output, "list:/dev")
    assert set(devices.split()) <= PLAIN_DEVICES


def test_it_writes_only_to_what_vanishes_and_no_setuid_bit_counts(output: list[str]) -> None:
    assert set(found(output, "writable")) == {"/tmp", "/dev/shm"}
    assert found(output, "setuid_works") == []


@pytest.mark.parametrize("what", BOMBS)
def test_bomb_is_bounded_and_leaves_nothing(what: str, hostile: Path, before: Snapshot) -> None:
    endless, made = what in ("forks", "threads"), Jail(limits=LIMITS, paths=[hostile])
    status, text, exceeded = run(hostile, made, what, timeout_s=0.5 if endless else 60)
    assert exceeded is BOMBS[what], text
    assert (status is None) is endless
    if not endless and not exceeded:
        assert int(found(text.splitlines(), "total")[0]) <= 128  # MiB
    assert left_behind(before) == []


def _jails_of_ours() -> list[Process]:
    return [p for p in process_table().values() if p.parent == os.getpid() and p.name == "bwrap"]


def test_bubblewrap_knows_nothing_of_its_starters_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KBENCH_SECRET", "secret")
    made = Jail(limits=LIMITS)
    with ChildProcess(made, ["/bin/sleep", "100"], jailed=True) as child:
        deadline = time.monotonic() + 60  # it is a shell at first
        while not (ours := _jails_of_ours()) and time.monotonic() < deadline:
            time.sleep(0.01)
        environments = [Path(f"/proc/{process.pid}/environ").read_bytes() for process in ours]
        assert child.running
    assert environments
    assert not [text for text in environments if b"KBENCH_SECRET" in text]

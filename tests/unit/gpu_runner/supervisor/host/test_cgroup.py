"""Control groups: found where a host has them, and otherwise done without."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.supervisor.host import cgroup
from gpu_runner.supervisor.host.cgroup import Group
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import ChildProcess


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something that looks like a control group file system with one service in it."""
    monkeypatch.setattr(cgroup, "_KILL_S", 0.0)
    service = tmp_path / "service" / "daemon"
    service.mkdir(parents=True)
    for folder, controllers in ((tmp_path, "memory pids"), (service.parent, "memory pids")):
        (folder / "cgroup.controllers").write_text(controllers)
        (folder / "cgroup.subtree_control").write_text(controllers)
    return tmp_path


def test_a_group_beside_our_own_is_made_where_ours_cannot_pass_limits_on(tree: Path) -> None:
    membership = tree / "membership"
    membership.write_text("4:memory:/elsewhere\n0::/service/daemon\n")
    assert cgroup.available(tree, membership) == tree / "service"


def test_there_may_be_none_and_one_that_is_not_ours_is_left_as_it_is(tree: Path) -> None:
    membership, control = tree / "membership", tree / "service" / "cgroup.subtree_control"
    for text in ("", "4:memory:/a\n", "0::/gone\n"):
        membership.write_text(text)
        assert cgroup.available(tree, membership) is None
    control.write_text("cpu")
    membership.write_text("0::/service/daemon\n")
    assert cgroup.available(tree, membership) is None
    assert control.read_text() == "cpu"


def test_limits_are_written_and_a_kill_for_memory_is_noticed(tree: Path) -> None:
    group = Group(tree / "service", 1 << 20, 7)
    limits = {name: (group.path / name).read_text() for name in ("memory.max", "pids.max")}
    assert limits == {"memory.max": "1048576", "pids.max": "7"}
    assert group.command(["a", "b"])[-3:] == [str(group.path), "a", "b"]
    assert not group.out_of_memory
    (group.path / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert (group.out_of_memory, group.killed_for_the_host) == (True, False)
    (group.path / "memory.events").write_text("oom 0\noom_kill 1\n")
    assert (group.out_of_memory, group.killed_for_the_host) == (False, True)
    group.close()
    assert (group.path / "cgroup.kill").read_text() == "1"


@pytest.mark.skipif(cgroup.available() is None, reason="no control groups can be made here")
def test_the_kernel_ends_a_jail_that_takes_too_much_memory() -> None:
    limits = Limits(cpu_s=20, memory_bytes=64 << 20, processes=32)
    script = "import mmap; m = mmap.mmap(-1, 256 << 20); m.write(b'x' * (256 << 20)); print('done')"
    with ChildProcess(Jail(limits=limits), ["/usr/bin/python3", "-c", script], jailed=True) as it:
        it.wait(20)
        assert it.memory_exceeded
        assert "done" not in it.output

"""A process gets no more memory than its host can spare, whoever sets the limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_runner.supervisor.host import cgroup, jail, killed, memory
from gpu_runner.supervisor.host.cgroup import Group
from gpu_runner.supervisor.host.jail import Jail, JailError, Limits
from gpu_runner.supervisor.host.memory import group_limits, spare_bytes
from gpu_runner.supervisor.host.process import ChildProcess

GIB, MIB = 1 << 30, 1 << 20
LIMITS = Limits(cpu_s=20, memory_bytes=1 * GIB, processes=32)
TAKES_400_MIB = ["/bin/bash", "-c", "head -c 400M /dev/zero | tail -n 1 | wc -c"]
ASKS_FOR_400_MIB = ["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=400M", "count=1"]
needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Sets what the host has in all and what is available of it."""

    def has(total: int, available: int) -> None:
        monkeypatch.setattr(memory, "_host", lambda: (total, available))

    return has


def test_a_host_keeps_an_eighth_of_its_memory_within_bounds(
    host: Callable[[int, int], None],
) -> None:
    total, available = memory._host()
    assert 0 < available <= total
    for total, available, spare in (
        (4 * GIB, 2 * GIB, 2 * GIB - 512 * MIB),
        (24 * GIB, 20 * GIB, 17 * GIB),
        (1024 * GIB, 900 * GIB, 896 * GIB),
        (4 * GIB, 100 * MIB, 0),
    ):
        host(total, available)
        assert spare_bytes() == spare


def test_groups_with_a_limit_count_up_to_the_root_and_older_ones_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, older = tmp_path / "user" / "service", tmp_path / "memory" / "box"
    for folder, limit, used in (service, "max", 5), (service.parent, "1000", 700):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text(str(used))
        (folder / "memory.stat").write_text("anon 3\ninactive_file 100\n")
    older.mkdir(parents=True)
    (older / "memory.limit_in_bytes").write_text("2000")
    (older / "memory.usage_in_bytes").write_text("50")
    (older / "memory.stat").write_text("total_inactive_file 80\n")
    membership = tmp_path / "membership"
    membership.write_text("0::/user/service\n")
    assert list(group_limits(tmp_path, membership)) == [(1000, 600)]
    membership.write_text("9:name=systemd:/\n4:memory:/box\n1:cpu:/box\n0::/\n")
    assert list(group_limits(tmp_path, membership)) == [(2000, 0)]
    monkeypatch.setattr(memory, "group_limits", lambda: iter([(1 << 62, 5), (3 * MIB, 2 * MIB)]))
    assert memory._host() == (3 * MIB, 1 * MIB)  # it has less than the host


def test_a_jail_keeps_a_limit_that_the_host_can_spare(host: Callable[[int, int], None]) -> None:
    made = Jail(limits=LIMITS)
    host(64 * GIB, 32 * GIB)
    assert made.on_this_host().limits.memory_bytes == GIB
    host(4 * GIB, 1 * GIB)
    assert made.on_this_host().limits.memory_bytes == GIB // 2
    host(4 * GIB, 600 * MIB)
    with pytest.raises(JailError, match=r"too little memory left: 0\.09 GiB"):
        made.on_this_host()


@needs_jail
def test_who_takes_more_than_the_host_can_spare_is_ended(host: Callable[[int, int], None]) -> None:
    for available, exceeded, limit in (
        (512 * MIB + 200 * MIB, True, "0.195 GiB, all that this host can spare"),
        (3 * GIB, False, "1 GiB"),
    ):
        host(4 * GIB, available)
        with ChildProcess(Jail(limits=LIMITS), TAKES_400_MIB, jailed=True) as child:
            child.wait(60)
        assert (child.memory_exceeded, child.memory_limit) == (exceeded, limit)
    limits = Limits(cpu_s=20, memory_bytes=100 * MIB, processes=32, refuses_memory=True)
    with ChildProcess(Jail(limits=limits), ASKS_FOR_400_MIB, jailed=True) as child:
        assert child.wait(60) == 1  # it is refused instead
    assert not child.memory_exceeded
    assert "dd: memory exhausted" in child.output


@needs_jail
@pytest.mark.parametrize("jailed", [True, False])
def test_the_kernel_ends_what_is_jailed_before_all_else(jailed: bool) -> None:
    command = ["/bin/cat", "/proc/self/oom_score_adj"]
    with ChildProcess(Jail(limits=LIMITS), command, jailed=jailed) as child:
        assert child.wait(60) == 0
    assert child.output.strip() == "1000"


@needs_jail
def test_a_kill_by_the_kernel_is_for_memory_where_most_of_it_was_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kills = iter([5])
    monkeypatch.setattr(killed, "oom_kills", lambda: next(kills, 6))
    with ChildProcess(Jail(limits=LIMITS), ["/bin/true"], jailed=True) as child:
        child.wait(60)
        assert not child.memory_exceeded
        child._used_bytes = LIMITS.memory_bytes * 2 // 3
        assert child.memory_exceeded


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

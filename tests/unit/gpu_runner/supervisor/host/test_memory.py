"""A process gets no more memory than its host can spare, whoever sets the limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_runner.supervisor.host import jail, killed, memory
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


@pytest.mark.parametrize(
    ("total", "available", "spare"),
    [
        (4 * GIB, 2 * GIB, 2 * GIB - 512 * MIB),
        (24 * GIB, 20 * GIB, 17 * GIB),
        (1024 * GIB, 900 * GIB, 896 * GIB),
        (4 * GIB, 100 * MIB, 0),
    ],
)
def test_a_host_keeps_an_eighth_of_its_memory_within_bounds(
    host: Callable[[int, int], None], total: int, available: int, spare: int
) -> None:
    host(total, available)
    assert spare_bytes() == spare


def test_this_host_has_something_to_spare() -> None:
    total, available = memory._host()
    assert 0 < available <= total
    assert spare_bytes() < available


def test_groups_with_a_limit_count_up_to_the_root(tmp_path: Path) -> None:
    service = tmp_path / "user" / "service"
    service.mkdir(parents=True)
    for folder, limit, used in (service, "max", 5), (service.parent, "1000", 700):
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text(str(used))
        (folder / "memory.stat").write_text("anon 3\ninactive_file 100\n")
    membership = tmp_path / "membership"
    membership.write_text("0::/user/service\n")
    assert list(group_limits(tmp_path, membership)) == [(1000, 600)]


def test_older_groups_count_too_and_others_do_not(tmp_path: Path) -> None:
    group = tmp_path / "memory" / "box"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("2000")
    (group / "memory.usage_in_bytes").write_text("50")
    (group / "memory.stat").write_text("total_inactive_file 80\n")
    membership = tmp_path / "membership"
    membership.write_text("9:name=systemd:/\n4:memory:/box\n1:cpu:/box\n0::/\n")
    assert list(group_limits(tmp_path, membership)) == [(2000, 0)]


def test_a_group_that_has_less_than_the_host_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "group_limits", lambda: iter([(1 << 62, 5), (3 * MIB, 2 * MIB)]))
    assert memory._host() == (3 * MIB, 1 * MIB)


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
    host(4 * GIB, 512 * MIB + 200 * MIB)
    with ChildProcess(Jail(limits=LIMITS), TAKES_400_MIB, jailed=True) as child:
        child.wait(60)
    assert child.memory_exceeded
    assert child.memory_limit == "0.195 GiB, all that this host can spare"


@needs_jail
def test_who_stays_within_it_is_not(host: Callable[[int, int], None]) -> None:
    host(64 * GIB, 32 * GIB)
    with ChildProcess(Jail(limits=LIMITS), TAKES_400_MIB, jailed=True) as child:
        status = child.wait(60)
    assert (status, child.memory_exceeded, child.memory_limit) == (0, False, "1 GiB")


@needs_jail
@pytest.mark.parametrize("jailed", [True, False])
def test_the_kernel_ends_what_is_jailed_before_all_else(jailed: bool) -> None:
    command = ["/bin/cat", "/proc/self/oom_score_adj"]
    with ChildProcess(Jail(limits=LIMITS), command, jailed=jailed) as child:
        assert child.wait(60) == 0
    assert child.output.strip() == "1000"


@needs_jail
def test_memory_beyond_the_limit_can_be_refused_instead() -> None:
    limits = Limits(cpu_s=20, memory_bytes=100 * MIB, processes=32, refuses_memory=True)
    with ChildProcess(Jail(limits=limits), ASKS_FOR_400_MIB, jailed=True) as child:
        status = child.wait(60)
    assert (status, child.memory_exceeded) == (1, False)
    assert "dd: memory exhausted" in child.output


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

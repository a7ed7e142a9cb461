"""A jail with a GPU in it is as closed as one without, but for that GPU's own nodes.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.supervisor.device.device import cuda_devices, first_gpu
from gpu_runner.supervisor.host import jail, nvml
from gpu_runner.supervisor.host.jail import Jail
from gpu_runner.supervisor.oracle.client import cuda_environment
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

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
    pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}"),
]

OTHERWISE = {
    "/sys/power/state": ("EACCES", "EROFS", "ENOENT"),  # the driver reads /sys, so it is there
    "c_memfd": ("ok",),  # the driver wants some
}
"""What comes of a try in another way than without a GPU."""


def _jail(program: Path) -> Jail:
    environment = cuda_environment(first_gpu())
    return Jail(limits=LIMITS, paths=[program], environment=environment, cuda_index=first_gpu())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that tries everything, confined as the runner is on a GPU."""
    return build_hostile(tmp_path_factory.mktemp("hostile"), "-DKBENCH_CUDA")


@pytest.fixture(scope="module")
def output(hostile: Path) -> list[str]:
    return try_all(hostile, _jail(hostile))


@pytest.fixture
def before() -> Snapshot:
    return snapshot()


@pytest.mark.parametrize("name", CLOSED)
def test_road_is_closed(name: str, output: list[str]) -> None:
    [came] = found(output, name)
    assert came in OTHERWISE.get(name, (CLOSED[name],))


@pytest.mark.skipif(not ROOT, reason="a jail of an ordinary user has one user")
@pytest.mark.parametrize("name", INIT)
def test_the_jails_own_init_is_out_of_reach(name: str, output: list[str]) -> None:
    assert found(output, name) in (["EPERM"], ["EACCES"])


def test_it_holds_no_descriptor_but_its_own_streams(output: list[str]) -> None:
    assert found(output, "list:/proc/self/fd") == ["0 1 2 3"]  # 3 is the listing itself


def test_it_sees_its_own_gpu_and_no_other_device(output: list[str]) -> None:
    [devices] = found(output, "list:/dev")
    node = f"nvidia{nvml.minor_number(first_gpu())}"
    more = set(devices.split()) - PLAIN_DEVICES
    assert node in more
    assert more <= {node, "nvidiactl", "nvidia-uvm"}


def test_it_writes_only_to_what_vanishes_and_no_setuid_bit_counts(output: list[str]) -> None:
    assert set(found(output, "writable")) == {"/tmp", "/dev/shm"}
    assert found(output, "setuid_works") == []


@pytest.mark.parametrize("what", BOMBS)
def test_bomb_is_bounded_and_leaves_nothing(what: str, hostile: Path, before: Snapshot) -> None:
    endless = what in ("forks", "threads")
    timeout_s = 0.5 if endless else 10
    status, text, exceeded = run(hostile, _jail(hostile), what, timeout_s=timeout_s)
    assert exceeded is BOMBS[what], text
    assert (status is None) is endless
    assert left_behind(before) == []

"""Every hostile kernel for a GPU is stopped as its file says, and no honest one is accused.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
The table of what stopped what is printed at the end.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest

from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.device.device import cuda_devices
from gpu_runner.supervisor.host.config import SupervisorConfig
from tests.adversarial.judging import run
from tests.adversarial.kernels import FOLDER, HONEST_FOLDER, Kernel, load_kernel, load_kernels
from tests.adversarial.redteam import COLUMNS, Line, build_all, make_config
from tests.leftovers import left_behind, snapshot

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

KERNELS = load_kernels(DeviceKind.CUDA)
HARMS_THE_NEXT = {31, 59, 64, 70, 71}
"""Rows after which an honest kernel must be right at once."""


def _next_in_line() -> Kernel:
    kernel = load_kernel(FOLDER / HONEST_FOLDER / "pipeline_of_twelve.cu")
    return dataclasses.replace(kernel, mode=Mode.TEST)


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    """What became of each kernel so far."""
    return []


@pytest.fixture(scope="module")
def config(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, lines: list[Line]
) -> Iterator[SupervisorConfig]:
    """All that this session runs is built first, side by side; at the end nothing is left."""
    cache = tmp_path_factory.getbasetemp().parent / "kbench-gpu-cache"
    found = make_config(DeviceKind.CUDA, cache)
    names = {item.name for item in request.session.items}
    chosen = [k for k in KERNELS if not k.lacks and any(f"[{k.name}]" in name for name in names)]
    build_all([*chosen, _next_in_line()], found)
    before = snapshot()
    yield found
    _print_table(request, lines)
    assert left_behind(before) == []


def _print_table(request: pytest.FixtureRequest, lines: list[Line]) -> None:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(f"\n\n{' | '.join(COLUMNS)} | seconds")
        for line in lines:
            print(f"{' | '.join(line.cells())} | {line.seconds:.1f}")


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernel_ends_as_its_file_says(
    kernel: Kernel, config: SupervisorConfig, lines: list[Line]
) -> None:
    if kernel.lacks:
        pytest.skip(kernel.lacks)
    began = time.monotonic()
    result, judgement = run(kernel, config)
    lines.append(Line(kernel, judgement, result.verdict, time.monotonic() - began))
    assert judgement.good, f"{judgement.outcome}: {judgement.happened}\n{result.output}{result.log}"
    if HARMS_THE_NEXT & set(kernel.rows):
        after = run(_next_in_line(), config)[1]
        assert after.good, f"the next kernel: {after.happened}"

"""Kernels of the red team that are judged by their outputs alone, whatever else the host does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host import jail
from tests.adversarial.judging import judge
from tests.adversarial.judging import request as request_of
from tests.adversarial.kernels import Kernel, load_kernels
from tests.adversarial.redteam import make_config
from tests.adversarial.side_by_side import SideBySide, processes_left, selected
from tests.adversarial.test_redteam import TWINS, marks_of

KERNELS = sorted(
    (
        kernel
        for kernel in load_kernels(DeviceKind.CPU)
        if kernel.needs_no_clock and kernel.name not in TWINS
    ),
    key=lambda kernel: (kernel.task.name, kernel.name),
)
"""In the order in which they are evaluated: no test waits for another's kernel."""


@pytest.fixture(scope="module")
def evaluations(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SideBySide]:
    """All that are selected, begun in the background; at the end no process of any is left."""
    folder = tmp_path_factory.mktemp("untimed")
    config = make_config(DeviceKind.CPU, folder)
    every = [kernel for kernel in selected(request, "kernel") if not kernel.lacks]
    requests = {kernel.name: request_of(kernel, config) for kernel in every}
    with SideBySide(requests, config, folder) as evaluations:
        yield evaluations
    assert processes_left(folder) == []


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
@pytest.mark.parametrize(
    "kernel",
    [pytest.param(kernel, id=kernel.name, marks=marks_of(kernel)) for kernel in KERNELS],
)
def test_kernel_ends_as_its_file_says(kernel: Kernel, evaluations: SideBySide) -> None:
    result = evaluations.result(kernel.name)
    judgement = judge(kernel, result)
    assert judgement.good, f"{judgement.outcome}: {judgement.happened}\n{result.output}{result.log}"

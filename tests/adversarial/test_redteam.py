"""Every hostile kernel is stopped as its file says, and no honest one is accused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from gpu_runner.data.protocol import PLANS
from gpu_runner.data.verdict import Abi, DeviceKind, Mode
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.pool import Oracles
from tests.adversarial.cases import load_cases
from tests.adversarial.catalogue import ROWS
from tests.adversarial.judging import run
from tests.adversarial.kernels import Kernel, alike, crowded, load_kernels, repeated
from tests.adversarial.redteam import build_all, make_config, uncovered
from tests.adversarial.side_by_side import OneOracle, selected
from tests.leftovers import left_behind, snapshot

KERNELS = load_kernels(DeviceKind.CPU)
TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
TWINS = {
    "python/row07_17_42_interpreter", "python/row24_clock", "python/row43_44_53_runner",
}  # fmt: skip
"""An extension tries the same here, in the same interpreter; `make redteam` runs both."""
AGAIN = {
    "torch/row19_lazy_tensor_impl",
    "torch/row21_over_by_page",
    "torch/row21_thread_after_return",
    "torch/row22_early_thread",
    "torch/row24_python_clock",
    "torch/row26_clock_import",
    "torch/row26_leave_code",
    "torch/row51_frame_halved",
    "torch/row53_result_halved",
    "torch/row59_constructor",
}
"""What a kernel of the c ABI or another extension shows, too; `make test ALL=1` runs them."""
IN_ORDER = sorted(
    (kernel for kernel in KERNELS if not kernel.needs_no_clock and kernel.name not in TWINS),
    key=lambda kernel: (kernel.task.name, kernel.name),
)
"""The others are in test_redteam_outputs.py."""
AGAIN |= repeated(KERNELS) | alike(KERNELS)
AGAIN |= crowded(kernel for kernel in KERNELS if kernel.name not in AGAIN | TWINS)


def marks_of(kernel: Kernel) -> list[pytest.MarkDecorator]:
    """Whether a kernel is left to `make test ALL=1`, or cannot be tried here."""
    later = [pytest.mark.thorough] if kernel.name in AGAIN else []
    return [*later, pytest.mark.skipif(bool(kernel.lacks), reason=kernel.lacks)]


needs_jail = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SupervisorConfig:
    return make_config(DeviceKind.CPU, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module", autouse=True)
def _all_are_built(request: pytest.FixtureRequest, config: SupervisorConfig) -> Iterator[None]:
    """Build all at first, and see that nothing is left of any at last."""
    before = snapshot()
    if not jail.probe():
        build_all(selected(request, "kernel"), config)
    yield
    assert left_behind(before) == []


@pytest.fixture(scope="module")
def oracles() -> Iterator[Oracles]:
    kept = OneOracle()
    yield kept
    kept.close()


def in_one_process(kernel: Kernel) -> AbstractContextManager[object]:
    """Ranked torch extensions are timed in one process each, which alone must show the forgery.

    Others would show the same again, after importing PyTorch again.
    """
    if kernel.abi is not Abi.TORCH:
        return nullcontext()
    baselines = bool(kernel.task.baselines)
    plan = replace(PLANS[Mode.RANKED], processes=1, extra_processes=0, baselines=baselines)
    return mock.patch.dict(PLANS, {Mode.RANKED: plan})


@needs_jail
@pytest.mark.parametrize(
    "kernel",
    [pytest.param(kernel, id=kernel.name, marks=marks_of(kernel)) for kernel in IN_ORDER],
)
def test_kernel_ends_as_its_file_says(
    kernel: Kernel, config: SupervisorConfig, oracles: Oracles
) -> None:
    with in_one_process(kernel):
        result, judgement = run(kernel, config, oracles)
    assert judgement.good, f"{judgement.outcome}: {judgement.happened}\n{result.output}{result.log}"


def test_catalogue_has_all_rows_and_kernels_name_no_other() -> None:
    numbers = [row.number for row in ROWS]
    assert numbers == list(range(1, 74))
    for kind in DeviceKind:
        assert {row for kernel in load_kernels(kind) for row in kernel.rows} <= set(numbers)


@pytest.mark.parametrize("kind", DeviceKind)
def test_every_row_is_tried_or_cannot_be(kind: DeviceKind) -> None:
    untried = uncovered(load_kernels(kind), kind)
    assert [row.number for row, instead in untried if not instead] == []
    tests = {row.elsewhere[kind] for row in ROWS if kind in row.elsewhere}
    assert all((TESTS / "adversarial" / test).exists() or (ROOT / test).exists() for test in tests)


def test_every_case_of_the_catalogue_is_loaded() -> None:
    assert {kernel.rows[0] for kernel in load_cases()} == {row.number for row in ROWS if row.cases}

"""A burst of a Python kernel is one graph where it can be, and its calls one by one where not.

On a GPU host without the site's packages: `python -m pytest -c /dev/null --rootdir . tests/gpu`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gpu_runner.engine.device import cuda_runtime
from gpu_runner.engine.device.recorded import Recorder
from gpu_runner.supervisor.device.device import cuda_devices

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_devices(), reason="this machine has no CUDA device"),
]

CALLS = 5


@pytest.fixture
def x() -> torch.Tensor:
    return torch.zeros(1 << 20, device="cuda")


def made_after(recorder: Recorder, setup: int, x: torch.Tensor, call: Callable[[], object]) -> bool:
    """Whether calls that were recorded first have the input that came only then."""
    calls = recorder.record(setup, [call] * CALLS)
    x.fill_(3)
    results = calls()
    torch.cuda.synchronize()
    x.zero_()
    return all(isinstance(y, torch.Tensor) and bool((y == 4).all()) for y in results)


def test_each_burst_reads_inputs_that_come_after_it_was_recorded(x: torch.Tensor) -> None:
    recorder = Recorder()
    for _ in range(3):
        assert made_after(recorder, 0, x, lambda: x + 1)


def test_a_call_that_reads_a_value_is_made_as_it_is(x: torch.Tensor) -> None:
    recorder = Recorder()
    assert made_after(recorder, 0, x, lambda: x + x.mean().item() - 2)
    assert torch.rand(4, device="cuda").isfinite().all()
    assert made_after(recorder, 1, x, lambda: x + 1)


def test_work_on_another_stream_that_joins_is_recorded(x: torch.Tensor) -> None:
    side = torch.cuda.Stream()

    def call() -> torch.Tensor:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x + 1
        torch.cuda.current_stream().wait_stream(side)
        return y

    assert made_after(Recorder(), 0, x, call)


def test_work_on_the_default_stream_is_never_left_out(x: torch.Tensor) -> None:
    def call() -> torch.Tensor:
        y = torch.empty_like(x)
        with torch.cuda.stream(torch.cuda.default_stream()):
            torch.add(x, 1, out=y)
        return y

    assert made_after(Recorder(), 0, x, call)


def test_a_blocking_stream_is_one_of_its_own() -> None:
    assert 0 != cuda_runtime.blocking_stream() != cuda_runtime.blocking_stream()

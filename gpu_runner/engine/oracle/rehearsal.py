"""What an oracle does ahead of its first evaluation, so that nobody waits for it then."""

from __future__ import annotations

import os

import torch

from gpu_runner.engine.device.turn import hold
from gpu_runner.engine.oracle.device_calls import DeviceCalls
from gpu_runner.engine.oracle.fingerprint import fingerprint
from gpu_runner.engine.problem.compare import Limit, compare

_ELEMENTS = 4096  # chosen: enough for each operation to run once
_MEMORY_BYTES = 4 << 20  # chosen: as `_ELEMENTS`


def rehearse(lock: int, control: int, device: str) -> None:
    """Open the device, and do once what evaluations do: code is loaded when it is first used.

    Holds `lock` meanwhile, so that nobody is measured beside it; where something is asked on
    `control` before it can be had, the device is the asker's, and nothing is left to be done.
    """
    try:
        if not hold(lock, control):
            return
        with torch.no_grad():
            _use(device)
        if device == "cuda":
            torch.cuda.empty_cache()
    finally:
        os.close(lock)


def _use(device: str) -> None:
    values = torch.randn(_ELEMENTS, device=device)
    fingerprint([values])
    exact = values.double()
    compare(values, exact, Limit(8.0), exact.abs() + exact.square().mean().sqrt())
    square = exact.view(64, 64)
    (square @ square).exp().softmax(-1).sum(-1)
    if device == "cuda":
        _stage(values)


def _stage(values: torch.Tensor) -> None:
    calls = DeviceCalls(_MEMORY_BYTES, _MEMORY_BYTES)
    call: dict[str, object] = {
        "inputs": [1 << 20],
        "names": ["x"],
        "inout": [],
        "outputs": [["y", 1 << 20, (1 << 20) + values.nbytes]],
        "guard": 1 << 16,
    }
    calls.poison(0, 2 << 20, 1)
    calls.mislead([call], 1)
    calls.stage([call], [[values]])
    calls.make_cold()
    calls.check()
    calls.copy_out(1 << 20, values.nbytes).clone()
    torch.cuda.synchronize()
    for descriptor in calls.descriptors:
        os.close(descriptor)

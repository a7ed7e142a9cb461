"""Seeds torch's generators, those of devices where there is one."""

from __future__ import annotations

import functools

import torch


def reseed(seed: int) -> None:
    """The same as `torch.manual_seed`, which writes down a stack for every kind of device.

    Where CUDA is not there it keeps all of these, and takes a hundred times as long.
    """
    if _has_cuda():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@functools.cache
def _has_cuda() -> bool:
    return torch.cuda.is_available()

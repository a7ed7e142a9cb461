"""Calls of the CUDA runtime that PyTorch does not offer, made in the library that it has loaded."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from torch import Tensor

_HOST_REGISTER_DEFAULT, _HOST_REGISTER_READ_ONLY = 0, 8  # driver_types.h


def reset_persisting_cache() -> None:
    """Drop the lines that a kernel asked L2 to keep, for they would outlive the flush.

    Nothing on devices without such lines. Raises `OSError` if the runtime is not loaded.
    """
    _tolerate(_runtime().cudaCtxResetPersistingL2Cache())


def pin(memory: Tensor, *, writable: bool) -> None:
    """Pin the pages of a tensor on the host: copies get faster. Where it is refused, nothing."""
    flag = _HOST_REGISTER_DEFAULT if writable else _HOST_REGISTER_READ_ONLY
    address, size = ctypes.c_void_p(memory.data_ptr()), ctypes.c_size_t(memory.nbytes)
    _tolerate(_runtime().cudaHostRegister(address, size, ctypes.c_uint(flag)))


def _tolerate(status: int) -> None:
    """Take back the error that the runtime remembers, lest PyTorch reports it as its own."""
    if status != 0:
        _runtime().cudaGetLastError()


@functools.cache
def _runtime() -> ctypes.CDLL:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "/libcudart" in line:
            return ctypes.CDLL(line[line.index("/") :])
    raise OSError("the CUDA runtime library is not loaded")

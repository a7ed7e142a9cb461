"""Calls of the CUDA runtime that PyTorch does not offer, made in the library that it has loaded."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path


def reset_persisting_cache() -> None:
    """Drop the lines that a kernel asked L2 to keep, for they would outlive the flush.

    Nothing on devices without such lines. Raises `OSError` if the runtime is not loaded.
    """
    _tolerate(_runtime().cudaCtxResetPersistingL2Cache())


def forget_launches() -> None:
    """Begin anew to look for launches that fail."""
    if interposed := _interposed():
        interposed.kb_take_launch_failure()


def check_launches() -> None:
    """Raise `RuntimeError` with CUDA's own words if a launch has failed, whoever has asked for it.

    Nothing in a process without the interposed functions.
    """
    interposed = _interposed()
    if interposed is None or (status := interposed.kb_take_launch_failure()) == 0:
        return
    words = []
    for name in ("cudaGetErrorName", "cudaGetErrorString"):
        say = getattr(_runtime(), name)
        say.restype = ctypes.c_char_p
        words.append(say(status).decode())
    raise RuntimeError(f"CUDA error: a kernel was not launched: {': '.join(words)}")


def arm_mark(event: int) -> None:
    """From now on, mark by this event the last work before a call waits for it; 0 ends that."""
    if interposed := _interposed():
        interposed.kb_arm_mark(ctypes.c_void_p(event))


def is_marked() -> bool:
    """Whether that event was recorded, and no work was started since."""
    interposed = _interposed()
    return interposed is not None and bool(interposed.kb_is_marked())


def queued_ns(ended_ns: int) -> int:
    """When the host was done with queueing a call that it left at `ended_ns`: it waited or left.

    Both in ns of `time.monotonic_ns`.
    """
    interposed = _interposed()
    return ended_ns if interposed is None else int(interposed.kb_queued_ns(ended_ns))


def blocking_stream() -> int:
    """The handle of a stream beside which nothing may be launched to the default one.

    So a graph that is recorded from it holds all work, or none. Raises `RuntimeError`.
    """
    stream = ctypes.c_void_p()
    if status := _runtime().cudaStreamCreate(ctypes.byref(stream)):
        raise RuntimeError(f"CUDA error {status}: no stream could be made")
    return stream.value or 0


@functools.cache
def _interposed() -> ctypes.CDLL | None:
    """This process, if the library of native/interposed.h was loaded into it."""
    process = ctypes.CDLL(None)
    if not hasattr(process, "kb_take_launch_failure"):
        return None
    process.kb_queued_ns.argtypes = (ctypes.c_uint64,)
    process.kb_queued_ns.restype = ctypes.c_uint64
    return process


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

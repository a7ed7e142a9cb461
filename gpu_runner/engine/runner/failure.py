"""Sort what was raised during a call into the wire's reasons."""

from __future__ import annotations

import torch

from gpu_runner.data.wire import ErrorCode
from gpu_runner.engine.problem.problem import ProblemError
from gpu_runner.engine.runner.returned import CallError

_TEXT_LINES, _TEXT_CHARACTERS = 5, 1000
_MEMORY_WORDS = ("bad_alloc", "can't allocate memory", "not enough memory", "out of memory")
_DEVICE_IS_FULL = ("CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
_DEVICE_WORDS = ("CUDA error", "CUDA driver error", "cudaError", "CUBLAS_STATUS", "CUDNN_STATUS")


def failure_of(error: BaseException) -> CallError:
    """The wire's reason for what was raised, with the first lines of its message."""
    if isinstance(error, CallError):
        return error
    return CallError(_code(error), first_lines(error))


def first_lines(error: BaseException) -> str:
    """The message without the backtraces that C++ appends; the type where it has no message."""
    lines = str(error).splitlines()[:_TEXT_LINES]
    text = "\n".join(lines).strip()[:_TEXT_CHARACTERS]
    if isinstance(error, ProblemError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def lacks(error: BaseException) -> str:
    """What there was not enough of: "memory", "device memory", or "" if that is not why."""
    reason: BaseException | None = error
    while reason is not None:
        is_full = any(word in str(reason) for word in _DEVICE_IS_FULL)
        if is_full or isinstance(reason, torch.OutOfMemoryError):
            return "device memory"
        if _code(reason) is ErrorCode.MEMORY:
            return "memory"
        reason = reason.__cause__ or reason.__context__
    return ""


def _code(error: BaseException) -> ErrorCode:
    text = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return ErrorCode.MEMORY
    if isinstance(error, RuntimeError):
        if any(word in text for word in _MEMORY_WORDS):
            return ErrorCode.MEMORY
        if any(word in text for word in _DEVICE_WORDS):
            return ErrorCode.DEVICE
    if isinstance(error, ImportError):
        return ErrorCode.SYMBOL
    return ErrorCode.EXCEPTION

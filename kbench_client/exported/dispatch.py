"""Where the kernel was surely faster: there it is called, and elsewhere PyTorch."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from . import loader, task

ALIGNMENT = {"cpu": 64, "cuda": 512}
"""Bytes by which PyTorch's own allocators align tensors; kernels were measured so, too."""


def supports(*arguments: Any) -> bool:
    """Whether the kernel was measured on such a call, and was surely faster than PyTorch.

    True for the device, dtypes, shapes and numbers of a workload on which its 95 % interval lies
    above the best baseline, if no gradient is wanted and the tensors are contiguous.
    """
    return _fits(arguments) and _proven().get(task.sizes(_passed(arguments)), False)


def call(*arguments: Any) -> Any:
    """The kernel's outputs where `supports` holds, else PyTorch's: a tensor, or a tuple of them."""
    outputs = run(arguments)
    return outputs[0] if len(outputs) == 1 else outputs


def run(arguments: task.Arguments) -> task.Outputs:
    """The same, always as a tuple."""
    passed = _passed(arguments)
    return loader.kernel()(passed) if supports(*arguments) else task.fallback(passed)


@functools.cache
def why_not_on(device: torch.device) -> str:
    """Why nothing is proven on this device; empty where it is the one that was measured."""
    measured = task.WINNER["device"]
    here: dict[str, Any] = {"kind": device.type, "name": "none", "cpus": measured["cpus"]}
    if device.type == "cuda" and torch.cuda.is_available():
        here["name"] = torch.cuda.get_device_name(device)
    elif device.type == "cpu":
        here |= {"name": _cpu(), "cpus": len(os.sched_getaffinity(0))}
    return "" if here == measured else f"measured on {_words(measured)}; this is {_words(here)}"


def _words(device: dict[str, Any]) -> str:
    processors = f", {device['cpus']} processors" if device["kind"] == "cpu" else ""
    return f"{device['kind']} ({device['name']}{processors})"


def _cpu() -> str:
    """As /proc/cpuinfo names it."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else "unknown CPU"


def _passed(arguments: task.Arguments) -> task.Arguments:
    """The arguments with numbers as the kernel gets them."""
    return tuple(map(task.number, task.NAMES, arguments))


def _fits(arguments: task.Arguments) -> bool:
    tensors = list(task.tensors_in(arguments))
    devices = {tensor.device for tensor in tensors}
    return (
        len(arguments) == len(task.NAMES)
        and len(devices) == 1
        and not why_not_on(next(iter(devices)))
        and not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))
        and all(map(_is_plain, tensors))
    )


def _is_plain(tensor: Tensor) -> bool:
    """Whether it lies in memory as those did that were measured."""
    is_own = type(tensor) in (Tensor, nn.Parameter) and tensor.is_contiguous()
    return is_own and tensor.data_ptr() % ALIGNMENT[tensor.device.type] == 0


@functools.cache
def _proven() -> dict[Any, bool]:
    """By sizes of a measured call: whether each workload of these sizes was surely faster."""
    found: dict[Any, bool] = {}
    for workload in task.WINNER["workloads"]:
        key = task.sizes(_passed(task.example(workload)))
        found[key] = found.get(key, True) and workload["faster"]
    return found

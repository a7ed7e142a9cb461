"""Settings of PyTorch that every process of an evaluation shares, and the name of its device."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch


def settle(threads: int = 0) -> None:
    """So many threads, no TF32 anywhere, and no sums in 16 bits.

    threads: 0 for one on each core of the affinity mask. A library may split a product of 16-bit
    matrices and add the parts in 16 bits.
    """
    torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def settle_reproducibly() -> None:
    """Same bits from the same seed: for the oracle, which draws each input twice.

    Call it before CUDA is initialised.
    """
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.backends.cudnn.benchmark = False
    # `use_deterministic_algorithms` does these two, and loads all of PyTorch's compiler: that takes
    # two seconds of a processor.
    os.environ["TORCHINDUCTOR_DETERMINISTIC"] = "1"
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def device_name(device: str) -> str:
    """Name of the GPU or of the CPU, for a person."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.machine()


def give_memory_back() -> None:
    """Free unused memory of the GPU, which the runner needs too, where PyTorch keeps much of it."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return
    total = torch.cuda.get_device_properties().total_memory
    if torch.cuda.memory_reserved() > total // 8:
        torch.cuda.empty_cache()

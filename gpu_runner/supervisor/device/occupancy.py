"""Estimates a CUDA kernel's occupancy from what the assembler says it takes; pure."""

from __future__ import annotations

from gpu_runner.data.profile import KernelMetrics, KernelResources

ASSUMED_BLOCK_THREADS = 256  # chosen: what kernels use most
NOTE = (
    f"occupancy is an estimate for blocks of {ASSUMED_BLOCK_THREADS} threads without dynamic"
    " shared memory: the block size is not known without a profiler"
)

_WARP = 32  # CUDA C++ Programming Guide, as all of these: compute capabilities
_REGISTERS_PER_SM = 65536  # of all from 7.0 on
_REGISTERS_STEP = 256  # registers are given to a warp in such steps
_MOST_BLOCKS_PER_SM = 32  # of the largest; fewer on small GPUs
_WARPS_PER_SM = {"sm_75": 32, "sm_86": 48, "sm_87": 48, "sm_89": 48, "sm_120": 48}  # others: 64
_SHARED_PER_SM = {
    "sm_70": 96 << 10,
    "sm_75": 64 << 10,
    "sm_80": 164 << 10,
    "sm_86": 100 << 10,
    "sm_87": 164 << 10,
    "sm_89": 100 << 10,
    "sm_90": 228 << 10,
    "sm_100": 228 << 10,
    "sm_120": 100 << 10,
}
"""Bytes; CUDA C++ Programming Guide, table of technical specifications per compute capability."""


def estimates(
    resources: tuple[KernelResources, ...], architecture: str
) -> tuple[KernelMetrics, ...]:
    """What each kernel takes, and its estimated occupancy in percent."""
    return tuple(
        KernelMetrics(
            name=kernel.name,
            metrics={
                "registers_per_thread": float(kernel.registers),
                "static_shared_bytes_per_block": float(kernel.shared_bytes),
                "spill_store_bytes": float(kernel.spill_store_bytes),
                "spill_load_bytes": float(kernel.spill_load_bytes),
                "estimated_occupancy_pct": occupancy_pct(kernel, architecture),
            },
        )
        for kernel in resources
    )


def occupancy_pct(kernel: KernelResources, architecture: str) -> float:
    """Resident warps over the most that a multiprocessor holds, in percent."""
    architecture = architecture.rstrip("a")  # the same device: see `toolchain.architecture`
    most = _WARPS_PER_SM.get(architecture, 64)
    warps = ASSUMED_BLOCK_THREADS // _WARP
    per_warp = -(-max(kernel.registers, 1) * _WARP // _REGISTERS_STEP) * _REGISTERS_STEP
    blocks = min(_REGISTERS_PER_SM // per_warp // warps, most // warps, _MOST_BLOCKS_PER_SM)
    shared = _SHARED_PER_SM.get(architecture)
    if shared and kernel.shared_bytes:
        blocks = min(blocks, shared // kernel.shared_bytes)
    return 100.0 * blocks * warps / most

"""What the supervisor is told about its host and about the device that it measures on."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from gpu_runner.data.verdict import DeviceKind

GIB = 1 << 30  # bytes


def default_cache_folder() -> Path:
    """Where builds, baselines and locks are kept: $KBENCH_CACHE, else ~/.cache/kbench."""
    configured = os.environ.get("KBENCH_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "kbench"


@dataclass(frozen=True, kw_only=True)
class SupervisorConfig:
    """One device, and the limits of the processes that work for it.

    niceness: of builds, so that a measured process doesn't wait for a processor because of them.
    device: slug of the device's queue and board. index: of a CUDA device. allow_unjailed: run
    without a jail where none can be made; every result says so.
    """

    kind: DeviceKind = DeviceKind.CPU
    index: int = 0
    device: str = "cpu"
    cache_folder: Path = field(default_factory=default_cache_folder)
    allow_unjailed: bool = False
    niceness: int = 10
    build_timeout_s: float = 300.0
    call_timeout_s: float = 10.0
    start_timeout_s: float = 120.0
    oracle_timeout_s: float = 300.0
    measure_timeout_s: float = 1800.0  # of all calls of a submission, their staging included
    profile_timeout_s: float = 90.0  # of a call that a profiler repeats for every counter
    device_timeout_s: float = 3600.0  # longest wait for the device
    memory_bytes: int = 8 * GIB  # private memory of a jailed runner or builder
    processes: int = 256  # of a jail, threads included

    def cached(self, what: str, of: str) -> Path:
        """Where the cache keeps `what` for that text, which names all that it depends on."""
        return self.cache_folder / what / hashlib.sha256(of.encode()).hexdigest()

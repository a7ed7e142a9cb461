"""What a CPU can do at most, from what the kernel says of its cores, instructions and caches."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

UNKNOWN_CLOCK_HZ = 6.5e9
"""Where no highest clock is known, as in most virtual machines: more than any CPU is sold with."""
CPUINFO = Path("/proc/cpuinfo")
SYSTEM = Path("/sys/devices/system/cpu")
_AMD_256_BIT_FAMILIES = ("25",)  # Zen 3 and Zen 4: 512-bit instructions in two halves
_AMX_FLOP_PER_CYCLE = 1024.0  # 2 x 16 x 16 x 32 in 16 cycles


@dataclass(frozen=True)
class Cores:
    """Physical cores, their highest clock, and FLOP a cycle and core by dtype."""

    count: int
    clock_hz: float
    flop_per_cycle: Mapping[str, float]
    instructions: str  # the widest that count, for a person

    @property
    def flops(self) -> dict[str, float]:
        """FLOP/s of all cores together, by dtype."""
        rate = self.count * self.clock_hz
        return {dtype: flop * rate for dtype, flop in self.flop_per_cycle.items()}


@functools.cache
def cores() -> Cores:
    """The cores of this host, all of them: a kernel may move to a core that it was not given."""
    highest = max(numbers(SYSTEM, "cpu[0-9]*/cpufreq/cpuinfo_max_freq"), default=0.0)
    return parse(text_of(CPUINFO), os.cpu_count() or 1, highest * 1e3)


def parse(cpuinfo: str, logical: int, clock_hz: float) -> Cores:
    """Cores as /proc/cpuinfo describes them; `logical` counts where it names no cores."""
    places = set()
    for block in cpuinfo.split("\n\n"):
        package, core = field_of(block, "physical id"), field_of(block, "core id")
        if package and core:
            places.add((package, core))
    flags = set((field_of(cpuinfo, "flags") or field_of(cpuinfo, "Features")).split())
    family = field_of(cpuinfo, "cpu family") if "AMD" in field_of(cpuinfo, "vendor_id") else ""
    lanes, name = _float32(flags, halved=family in _AMD_256_BIT_FAMILIES)
    rates = {"float32": lanes, "float64": lanes / 2, "float16": lanes, "bfloat16": lanes}
    if "avx512_bf16" in flags:
        rates["bfloat16"] = 2 * lanes
    if flags & {"avx512_fp16", "asimdhp"}:
        rates["float16"] = 2 * lanes
    if flags & {"bf16", "svebf16"}:  # Arm's: matrix instructions among them
        rates["bfloat16"] = 4 * lanes
    if "amx_bf16" in flags:
        rates["bfloat16"], name = _AMX_FLOP_PER_CYCLE, "AMX"
    if "amx_fp16" in flags:
        rates["float16"] = _AMX_FLOP_PER_CYCLE
    return Cores(len(places) or logical, clock_hz or UNKNOWN_CLOCK_HZ, rates, name)


def field_of(text: str, name: str) -> str:
    """The first value of that name in /proc/cpuinfo; empty if there is none."""
    match = re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""


def _float32(flags: set[str], *, halved: bool) -> tuple[float, str]:
    """FLOP a cycle in float32, with two multiply-adds a cycle (four of Arm's short ones)."""
    if "avx512f" in flags:
        return (32.0, "AVX-512 in halves") if halved else (64.0, "AVX-512")
    if "fma" in flags:
        return 32.0, "AVX2 with FMA"
    if "avx" in flags:
        return 16.0, "AVX"
    if "sve" in flags:
        return 64.0, "SVE"
    if "asimd" in flags:
        return 32.0, "NEON"
    if "sse2" in flags:
        return 8.0, "SSE"
    return 64.0, "unknown instructions"


def text_of(path: Path) -> str:
    """The text of a file of the kernel's; empty where there is none."""
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""


def numbers(folder: Path, pattern: str) -> list[float]:
    """What files of the kernel's say below a folder; those that say no number are left out."""
    found = []
    for path in folder.glob(pattern):
        with contextlib.suppress(ValueError):
            found.append(float(text_of(path)))
    return found


def clock_mhz(system: Path = SYSTEM, cpuinfo: Path = CPUINFO) -> float | None:
    """Mean clock of all cores now, by the frequency driver or the processor's own word."""
    known = [value / 1e3 for value in numbers(system, "cpu[0-9]*/cpufreq/scaling_cur_freq")]
    if not known:
        said = re.findall(r"^cpu MHz\s*: *([\d.]+)$", text_of(cpuinfo), re.MULTILINE)
        known = [float(value) for value in said]
    return sum(known) / len(known) if known else None


@functools.cache
def cache_bytes() -> float:
    """Bytes of all last-level caches of this host together; infinite where it does not say."""
    caches: dict[str, tuple[int, float]] = {}
    for folder in SYSTEM.glob("cpu[0-9]*/cache/index[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            level = int((folder / "level").read_text())
            shared = (folder / "shared_cpu_list").read_text().strip()
            size = float((folder / "size").read_text().strip().removesuffix("K")) * 1024
            caches[f"{level} {shared}"] = level, size
    last = max((level for level, _ in caches.values()), default=0)
    sizes = [size for level, size in caches.values() if level == last]
    return sum(sizes) if sizes else float("inf")

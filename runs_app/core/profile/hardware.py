"""The hardware sheet of a device as lines for a prompt, from the environment of its results."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpu_runner.data.environment import Environment, Hardware
from gpu_runner.data.verdict import DeviceKind

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30
_VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "asimd": "NEON"}
_RATES = {
    "float64": "float64",
    "float32": "float32 without tensor cores",
    "bfloat16": "bfloat16 with tensor cores",
    "float16": "float16 with tensor cores",
}


def processors_of(environment: Environment) -> int | None:
    """How many processors a kernel gets on a CPU; None where it is not known, or on a GPU."""
    return environment.measured_cpus if environment.device_kind is DeviceKind.CPU else None


def hardware_lines(environment: Environment) -> tuple[str, ...]:
    """What is known of the device, a fact a line; nothing is said of what is not known."""
    facts = environment.hardware or Hardware()
    if environment.device_kind is DeviceKind.CPU:
        return tuple(_cpu(environment, facts))
    return tuple(_gpu(environment, facts))


def cpu_in_short(environment: Environment) -> str:
    """What a CPU gives a kernel, in a sentence; empty of a GPU, and before anything is known."""
    count, facts = processors_of(environment), environment.hardware or Hardware()
    if not count:
        return ""
    threads = "1 processor (threads don't help)" if count == 1 else f"{count} processors"
    vectors = [words for name, words in _VECTORS.items() if name in facts.features][:1]
    caches = [
        f"{_size(each.bytes)} {'L1d' if each.level == 1 else f'L{each.level}'}"
        for each in facts.caches
    ]
    return f"Kernels get {', '.join([threads, *vectors, *caches])}."


def compiler_of(environment: Environment) -> str:
    """The compiler and its version; empty if it is not known."""
    said = environment.compiler
    build = re.match(r"Build cuda_([0-9.]+)\.r", said)  # the last line of nvcc's own words
    return f"nvcc {build[1]}" if build else said


def measured_rates(environment: Environment) -> tuple[float, float] | None:
    """Bytes/s of memory and FLOP/s in the task's dtype as they were measured; None if not."""
    rates = environment.measured
    return (rates.bytes_per_s, rates.flop_per_s) if rates and rates.flop_per_s else None


def bytes_per_s(environment: Environment) -> float:
    """The rate of the device's memory, as measured, else of its data sheet; 0 if unknown."""
    rates, sheet = measured_rates(environment), environment.hardware
    return rates[0] if rates else (sheet and sheet.bytes_per_s) or 0.0


def _cpu(environment: Environment, facts: Hardware) -> Iterator[str]:
    count = processors_of(environment)
    if count == 1:
        yield "the kernel gets one processor: more threads slow it down; vector instructions help"
    elif count:
        yield f"the kernel gets {count} processors, one per core; OpenMP starts that many threads"
    if facts.features:
        yield f"instructions that -march=native enables: {', '.join(facts.features)}"
    if facts.identity:
        yield f"it identifies itself as {facts.identity}"
    yield from _clock(facts)
    for cache in facts.caches:
        shared = "" if cache.shared_by == 1 else f", shared by {cache.shared_by} processors"
        name = "L1 data cache" if cache.level == 1 else f"L{cache.level} cache"
        yield f"{name}: {_size(cache.bytes)}, lines of {cache.line} bytes{shared}"
    rates = measured_rates(environment)
    if rates is not None:
        yield (
            f"measured on this host with streams and loops of multiply-adds: {rates[0] / 1e9:.3g}"
            f" GB/s from memory, {rates[1] / 1e9:.3g} GFLOP/s in the task's dtype; a good kernel"
            " may exceed either"
        )


def _gpu(environment: Environment, facts: Hardware) -> Iterator[str]:
    if environment.architecture:
        capability = facts.compute_capability
        more = f", compute capability {capability}" if capability else ""
        yield f"built for {environment.architecture}{more}"
    if facts.sms and facts.shared_bytes_per_sm and facts.shared_bytes_per_block:
        yield (
            f"{facts.sms} SMs, each with {_size(facts.shared_bytes_per_sm)} of shared memory"
            f" (a block at most {_size(facts.shared_bytes_per_block)}),"
            f" {facts.registers_per_sm} 32-bit registers, {facts.threads_per_sm} threads"
        )
    yield from _clock(facts)
    if facts.l2_bytes:
        yield f"L2 cache: {facts.l2_bytes / 1e6:.0f} MB"
    if facts.bytes_per_s:
        memory = f" of {_size(facts.memory_bytes)}" if facts.memory_bytes else ""
        source, by_dtype = facts.rates_are, facts.flop_per_s
        yield f"memory{memory}: {facts.bytes_per_s / 1e9:.4g} GB/s ({source})"
        known = [
            f"{by_dtype[d] / 1e12:.4g} {words}" for d, words in _RATES.items() if d in by_dtype
        ]
        yield f"TFLOP/s, dense ({source}): " + ", ".join(known)
    rates = measured_rates(environment)
    if rates is not None:
        yield (
            f"measured on this device: {rates[0] / 1e9:.4g} GB/s, {rates[1] / 1e12:.4g} TFLOP/s in"
            " the task's dtype"
        )
    if environment.driver:
        yield f"driver {environment.driver}"


def _clock(facts: Hardware) -> Iterator[str]:
    # that of one moment says nothing of a busy processor
    if facts.clock_hz and facts.clock_is == "highest":
        yield f"clock: {facts.clock_hz / 1e9:.3g} GHz at most"


def _size(count: float) -> str:
    for unit, name in ((_GIB, "GiB"), (_MIB, "MiB"), (_KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count:g} bytes"

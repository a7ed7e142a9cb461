"""The hardware sheet of a device as lines for a prompt, from the environment of its results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30
_RATES = {
    "float64": "float64",
    "float32": "float32 without tensor cores",
    "bfloat16": "bfloat16 with tensor cores",
    "float16": "float16 with tensor cores",
}


def processors_of(environment: Mapping[str, Any]) -> int | None:
    """How many processors a kernel gets on a CPU; None where it is not known, or on a GPU."""
    if environment.get("device_kind") != "cpu":
        return None
    found = environment.get("measured_cpus")
    return found if isinstance(found, int) else None


def hardware_lines(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """What is known of the device, a fact a line; nothing is said of what is not known."""
    facts = environment.get("hardware") or {}
    if environment.get("device_kind") == "cpu":
        return tuple(_cpu(environment, facts))
    return tuple(_gpu(environment, facts))


def compiler_of(environment: Mapping[str, Any]) -> str:
    """The compiler and its version; empty if it is not known."""
    said = str(environment.get("compiler") or "")
    build = re.match(r"Build cuda_([0-9.]+)\.r", said)  # the last line of nvcc's own words
    return f"nvcc {build[1]}" if build else said


def measured_rates(environment: Mapping[str, Any]) -> tuple[float, float] | None:
    """Bytes/s of memory and FLOP/s in the task's dtype as they were measured; None if not."""
    measured = (environment.get("peaks") or {}).get("measured") or {}
    moved, computed = measured.get("bytes_per_s"), measured.get("flop_per_s")
    return (moved, computed) if moved and computed else None


def bytes_per_s(environment: Mapping[str, Any]) -> float:
    """The rate of the device's memory, as measured, else of its data sheet; 0 if unknown."""
    rates = measured_rates(environment)
    sheet = (environment.get("hardware") or {}).get("bytes_per_s")
    return rates[0] if rates else float(sheet or 0.0)


def _cpu(environment: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    count = processors_of(environment)
    if count == 1:
        yield "the kernel gets ONE processor: more threads only cost time, vectors do not"
    elif count:
        yield f"the kernel gets {count} processors, one a core; OpenMP makes so many threads"
    if facts.get("features"):
        yield f"instructions that -march=native switches on: {', '.join(facts['features'])}"
    if facts.get("identity"):
        yield f"it identifies itself as {facts['identity']}"
    yield from _clock(facts)
    for cache in facts.get("caches", []):
        shared = "" if cache["shared_by"] == 1 else f", shared by {cache['shared_by']} processors"
        name = "L1 data cache" if cache["level"] == 1 else f"L{cache['level']} cache"
        yield f"{name}: {_size(cache['bytes'])}, lines of {cache['line']} bytes{shared}"
    rates = measured_rates(environment)
    if rates is not None:
        yield (
            f"measured on this host with streams and loops of multiply-adds: {rates[0] / 1e9:.3g}"
            f" GB/s from memory, {rates[1] / 1e9:.3g} GFLOP/s in the task's dtype; a good kernel"
            " may exceed either"
        )


def _gpu(environment: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    built_for = environment.get("architecture")
    if built_for:
        capability = facts.get("compute_capability")
        more = f", compute capability {capability}" if capability else ""
        yield f"built for {built_for}{more}"
    if "sms" in facts:
        yield (
            f"{facts['sms']} SMs, each with {_size(facts['shared_bytes_per_sm'])} of shared memory"
            f" (a block at most {_size(facts['shared_bytes_per_block'])}),"
            f" {facts['registers_per_sm']} registers of 32 bits, {facts['threads_per_sm']} threads"
        )
    yield from _clock(facts)
    if facts.get("l2_bytes"):
        yield f"L2 cache: {facts['l2_bytes'] / 1e6:.0f} MB"
    if facts.get("bytes_per_s"):
        size = facts.get("memory_bytes")
        memory = f" of {_size(size)}" if size else ""
        source = facts.get("rates_are", "")
        yield f"memory{memory}: {facts['bytes_per_s'] / 1e9:.4g} GB/s ({source})"
        rates = facts.get("flop_per_s", {})
        known = [f"{rates[d] / 1e12:.4g} {words}" for d, words in _RATES.items() if d in rates]
        yield f"TFLOP/s, dense ({source}): " + ", ".join(known)
    rates = measured_rates(environment)
    if rates is not None:
        yield (
            f"measured on this device: {rates[0] / 1e9:.4g} GB/s, {rates[1] / 1e12:.4g} TFLOP/s in"
            " the task's dtype"
        )
    if environment.get("driver"):
        yield f"driver {environment['driver']}"


def _clock(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts.get("clock_is") == "highest":  # that of one moment says nothing of a busy processor
        yield f"clock: {facts['clock_hz'] / 1e9:.3g} GHz at most"


def _size(count: float) -> str:
    for unit, name in ((_GIB, "GiB"), (_MIB, "MiB"), (_KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count:g} bytes"

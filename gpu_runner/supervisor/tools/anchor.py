"""Times a fixed kernel on a GPU in a process of its own, so that two days can be compared."""

from __future__ import annotations

import random
import statistics
from contextlib import closing

from gpu_runner.data import wire
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import Abi, Direction
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.build.build import build_anchor, build_runner, build_shim
from gpu_runner.supervisor.host.arena import Arena, Poison, extent, place, span_bytes
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.conditions import Arenas
from gpu_runner.supervisor.runner.faults import FaultError, RunnerUnfit, keeping_output
from gpu_runner.supervisor.runner.session import Session
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.tools import ncu
from gpu_runner.supervisor.tools.ncu import Ncu

SIGNATURE = Signature.parse("void anchor(float* out, const float* in, int n)")
ELEMENTS = 16 << 20  # chosen: beyond the caches of most GPUs
CALLS = 11
"""Their median. A call takes some 20 ms, most of it to carry tensors over. Source: judgement."""


def measure_anchor(config: SupervisorConfig) -> float:
    """Median time of the anchor kernel in ns. Raises `RunnerUnfit` if even that fails."""
    try:
        return statistics.median(_times(config, CALLS))
    except FaultError as error:
        raise RunnerUnfit(f"the anchor kernel fails on this host: {error}") from None


def probe_ncu(config: SupervisorConfig) -> str:
    """Empty if ncu reads counters of the anchor kernel in the jail, else why it does not.

    Raises `ToolchainError` where the kernel cannot be built.
    """
    path = ncu.find()
    if not path:
        return "ncu is not installed"
    with ncu.Ncu(path) as profiler:
        fault = ""
        try:
            _times(config, 2, profiler)
        except FaultError as error:
            fault = f"{error}. {error.output.strip()}"
        report = profiler.report()
    if ncu.complete(ncu.parse(report)):
        return ""
    return ncu.complaint(report, fault) or fault or ncu.SAW_NOTHING


def _times(config: SupervisorConfig, calls: int, profiler: Ncu | None = None) -> list[float]:
    target = Target(
        Abi.C,
        Direction.FORWARD,
        library=build_anchor(config),
        symbol=SIGNATURE.symbol,
        shim=build_shim(SIGNATURE, config),
        runner=build_runner(config),
    )
    with closing(Arena("anchor-inputs")) as inputs, closing(Arena("anchor-outputs")) as outputs:
        size = _prepare(inputs, outputs)
        rng = random.Random(0)  # noqa: S311 - content of no consequence
        arenas = Arenas(inputs, outputs)
        with Session(target, arenas, config, profiler) as session, keeping_output(session):
            session.ready()
            times = [session.call(_call(n, size, rng)).done.time_ns for n in range(calls)]
            session.end()
            return times


def _prepare(inputs: Arena, outputs: Arena) -> int:
    """Size the arenas and fill the inputs; returns the bytes of a tensor."""
    size = ELEMENTS * 4
    for arena in (inputs, outputs):
        arena.resize(span_bytes([size]))
        arena.seal_size()
    rng = random.Random(0)  # noqa: S311 - content of no consequence
    Poison(rng).fill(inputs.view, 0, span_bytes([size]))
    return size


def _call(call_id: int, size: int, rng: random.Random) -> wire.Call:
    read, written = place([size], rng), place([size], rng)
    arguments = (
        wire.Argument(ArgumentKind.OUTPUT, size, output_offset=written[0].offset),
        wire.Argument(ArgumentKind.INPUT, size, input_offset=read[0].offset),
        wire.Argument(ArgumentKind.VALUE, value=size // 4),
    )
    return wire.Call(call_id, arguments, *extent(read), *extent(written))

"""Times a fixed kernel in a process of its own, so that two days can be compared."""

from __future__ import annotations

import random
import statistics
from contextlib import closing

from gpu_runner.data import wire
from gpu_runner.data.signature import Signature
from gpu_runner.data.verdict import Abi, DeviceKind, Direction
from gpu_runner.data.wire import ArgumentKind
from gpu_runner.supervisor.arena import Arena, Poison, extent, place, span_bytes
from gpu_runner.supervisor.build import build_anchor, build_runner, build_shim
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.session import Arenas, FaultError, RunnerUnfit, Session, Target

SIGNATURE = Signature.parse("void anchor(float* out, const float* in, int n)")
ELEMENTS = {DeviceKind.CUDA: 16 << 20, DeviceKind.CPU: 1 << 20}
CALLS = 25


def measure_anchor(config: SupervisorConfig) -> float:
    """Median time of the anchor kernel in ns. Raises `RunnerUnfit` if even that fails."""
    target = Target(
        Abi.C,
        Direction.FORWARD,
        library=build_anchor(config),
        symbol=SIGNATURE.symbol,
        shim=build_shim(SIGNATURE, config),
        runner=build_runner(config),
    )
    with (
        closing(Arena("anchor-inputs")) as inputs,
        closing(Arena("anchor-outputs")) as outputs,
        closing(Arena("anchor-echo")) as echo,
    ):
        arenas = Arenas(inputs, outputs, echo)
        try:
            return statistics.median(_times(target, arenas, config))
        except FaultError as error:
            raise RunnerUnfit(f"the anchor kernel fails on this host: {error}") from None


def _times(target: Target, arenas: Arenas, config: SupervisorConfig) -> list[float]:
    size = ELEMENTS[config.kind] * 4
    for arena in (arenas.inputs, arenas.outputs, arenas.echo):
        arena.resize(span_bytes([size]))
        arena.seal_size()
    rng = random.Random(0)  # noqa: S311 - content of no consequence
    Poison(rng).fill(arenas.inputs.view, 0, span_bytes([size]))
    with Session(target, arenas, config) as session:
        session.ready()
        return [session.call(_call(call_id, size, rng)).time_ns for call_id in range(CALLS)]


def _call(call_id: int, size: int, rng: random.Random) -> wire.Call:
    read, written = place([size], rng), place([size], rng)
    arguments = (
        wire.Argument(ArgumentKind.OUTPUT, size, output_offset=written[0].offset),
        wire.Argument(ArgumentKind.INPUT, size, input_offset=read[0].offset),
        wire.Argument(ArgumentKind.VALUE, value=size // 4),
    )
    return wire.Call(call_id, arguments, *extent(read), *extent(written))

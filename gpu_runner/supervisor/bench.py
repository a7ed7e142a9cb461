"""The measuring loop: every call is at once a correctness call and a timing call."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gpu_runner.data import wire
from gpu_runner.data.evaluation import Mismatch, OutputError, ProcessRun
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.arena import Arena, Poison
from gpu_runner.supervisor.checks import check_guards, check_inputs, check_returned
from gpu_runner.supervisor.config import SupervisorConfig
from gpu_runner.supervisor.layout import Layout, arena_sizes, tensor_bytes
from gpu_runner.supervisor.ncu import Ncu
from gpu_runner.supervisor.oracle import Description, Oracle
from gpu_runner.supervisor.plan import Plan
from gpu_runner.supervisor.session import Arenas, Session, Target, keeping_output
from gpu_runner.supervisor.taken import TakenOutputs

SEED_BITS = 62

Progress = Callable[[int, int, int], None]
"""Told how many workloads are done, of how many, and how many calls were made."""


@dataclass
class Collected:
    """What one process has returned for one workload."""

    times_ns: list[float] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    taken: dict[int, int] = field(default_factory=dict)  # slot -> index of the call
    spent_s: float = 0.0

    def as_run(self, process: int) -> ProcessRun:
        """The facts as they stand in the result."""
        return ProcessRun(
            process=process,
            times_ns=tuple(self.times_ns),
            seeds=tuple(self.seeds),
            verified=tuple(sorted(self.taken.values())),
        )


@dataclass(frozen=True)
class Measured:
    """What one process has returned, by workload, and what it printed."""

    workloads: Mapping[str, Collected]
    output: str


@dataclass(frozen=True)
class Checked:
    """What the oracle found in one process's outputs of one workload."""

    errors: tuple[OutputError, ...]
    mismatch: Mismatch | None


class Bench:
    """What all measured processes of an evaluation share. Use as a context manager."""

    def __init__(
        self, oracle: Oracle, inputs: Arena, taken: Arena, config: SupervisorConfig
    ) -> None:
        """`inputs` and `taken` are the arenas that the oracle has inherited."""
        # Nobody may guess a seed, so it starts from the system's randomness.
        self._rng = random.Random(random.SystemRandom().getrandbits(256))  # noqa: S311
        self._oracle, self._inputs, self._config = oracle, inputs, config
        self._outputs, self._echo = Arena("outputs"), Arena("echo")
        self._taken = TakenOutputs(taken, self._rng)
        self._poison = Poison(self._rng)
        self._described: dict[str, Description] = {}
        self._direction = Direction.FORWARD
        self._call_id = 0

    def __enter__(self) -> Bench:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the shared memory back."""
        self._outputs.close()
        self._echo.close()

    def prepare(self, workloads: Sequence[Workload], direction: Direction) -> None:
        """Have every workload described, and size the arenas for the largest of them."""
        self._direction = direction
        for workload in workloads:
            described = self._oracle.describe(workload, direction, self._seed())
            self._described[workload.name] = described
        inputs, outputs = arena_sizes(list(self._described.values()))
        self._inputs.resize(inputs)
        self._outputs.resize(outputs)
        self._echo.resize(inputs)
        self._outputs.seal_size()
        self._echo.seal_size()
        # The first fill makes the oracle map the inputs. From then on nobody else can map them
        # writable, whatever a runner does with the descriptor that it inherits.
        self._poison.fill(self._inputs.view, 0, inputs)
        self._fill(workloads[0], self._layout(workloads[0]), self._seed())
        self._inputs.seal()

    def run(
        self,
        target: Target,
        workloads: Sequence[Workload],
        plan: Plan,
        progress: Progress,
        setup: Mapping[str, Any] | None = None,
    ) -> Measured:
        """Measure workloads in one fresh process, call by call in random order.

        Raises `FaultError` for whatever the process does wrong.
        """
        described = {workload.name: self._described[workload.name] for workload in workloads}
        self._taken.prepare(described, plan)
        collected = {workload.name: Collected() for workload in workloads}
        pending = list(workloads)
        arenas = Arenas(self._inputs, self._outputs, self._echo)
        with Session(target, arenas, self._config) as session, keeping_output(session):
            session.ready()
            if target.python:
                for workload in workloads:
                    session.setup(self._setup(workload, setup or {}))
            while pending:
                workload = self._rng.choice(pending)
                state = collected[workload.name]
                began = time.monotonic()
                self._one_call(session, target, workload, workloads.index(workload), state)
                state.spent_s += time.monotonic() - began
                if plan.is_done(state.times_ns, state.spent_s):
                    pending.remove(workload)
                calls = sum(len(c.times_ns) for c in collected.values())
                progress(len(workloads) - len(pending), len(workloads), calls)
            session.end()
            return Measured(collected, session.output)

    def run_profiled(self, target: Target, workload: Workload, ncu: Ncu) -> str:
        """Two calls under the profiler, which looks at the second; returns what was printed.

        Nothing of them is timed or verified. Raises `FaultError` for whatever goes wrong.
        """
        timeout_s = self._config.profile_timeout_s
        config = replace(self._config, call_timeout_s=timeout_s, start_timeout_s=timeout_s)
        arenas = Arenas(self._inputs, self._outputs, self._echo)
        with Session(target, arenas, config, ncu) as session, keeping_output(session):
            session.ready()
            if target.python:
                session.setup(self._setup(workload, {}))
            for _ in range(2):
                self._make_call(session, workload, 0)
            session.end()
            return session.output

    def tensor_bytes(self, workload: Workload) -> int:
        """Bytes of a call's inputs and outputs."""
        return tensor_bytes(self._described[workload.name])

    def verify(self, workload: Workload, collected: Collected) -> Checked:
        """Compare what was taken from a process, which has exited, with the reference."""
        errors: dict[str, OutputError] = {}
        mismatch = None
        for slot, index in sorted(collected.taken.items(), key=lambda item: item[1]):
            offsets = self._taken.offsets(workload.name, slot)
            found = self._oracle.verify(workload, self._direction, collected.seeds[index], offsets)
            for error in found.errors:
                errors[error.output] = larger_error(errors.get(error.output), error)
            mismatch = mismatch or found.mismatch
        return Checked(tuple(errors.values()), mismatch)

    def _one_call(
        self, session: Session, target: Target, workload: Workload, setup: int, state: Collected
    ) -> None:
        layout, seed, done = self._make_call(session, workload, setup)
        if target.python:
            check_returned(done, layout.description)
        check_guards(self._outputs.view, self._poison, layout)
        state.times_ns.append(done.time_ns)
        state.seeds.append(seed)
        self._maybe_take(target, workload, layout, state)

    def _make_call(
        self, session: Session, workload: Workload, setup: int
    ) -> tuple[Layout, int, wire.Done]:
        layout, seed = self._layout(workload), self._seed()
        self._fill(workload, layout, seed)
        self._call_id += 1
        call = layout.call(self._call_id, setup)
        self._poison.renew()
        self._poison.fill(self._outputs.view, call.outputs_low, call.outputs_high)
        return layout, seed, session.call(call)

    def _maybe_take(
        self, target: Target, workload: Workload, layout: Layout, state: Collected
    ) -> None:
        """Draw, only now that the call is acknowledged, whether it will be verified."""
        index = len(state.seeds) - 1
        slot = self._taken.draw_slot(workload.name, index)
        if slot is None:
            return
        # A C++ kernel cannot change its inputs: the hardware forbids it.
        if target.python or self._config.kind is DeviceKind.CUDA:
            check_inputs(self._inputs.view, self._echo.view, layout)
        self._taken.take(workload.name, slot, self._outputs.view, layout)
        state.taken[slot] = index

    def _setup(self, workload: Workload, extra: Mapping[str, Any]) -> dict[str, Any]:
        described = self._described[workload.name]
        return {
            "workload": workload.name,
            "direction": self._direction.value,
            "arguments": list(described.arguments),
            "outputs": [asdict(output) for output in described.outputs],
            **extra,
        }

    def _layout(self, workload: Workload) -> Layout:
        return Layout.draw(self._described[workload.name], self._rng)

    def _fill(self, workload: Workload, layout: Layout, seed: int) -> None:
        offsets = [region.offset for region in layout.inputs]
        self._oracle.fill(workload, self._direction, seed, offsets)

    def _seed(self) -> int:
        return self._rng.getrandbits(SEED_BITS)


def larger_error(known: OutputError | None, new: OutputError) -> OutputError:
    """The larger of each measure of two errors of the same output."""
    if known is None:
        return new
    return OutputError(
        output=new.output,
        scaled=max(known.scaled, new.scaled),
        relative=max(known.relative, new.relative),
    )

"""Calls of an audit that are neither timed nor judged: the same inputs at the same places."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from gpu_runner.data import wire
from gpu_runner.data.evaluation import Mismatch
from gpu_runner.data.protocol import FIRST_CALLS
from gpu_runner.data.task import Part, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.measure.bench import Bench
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.conformance import check_returned
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.measure.sampled_outputs import Sample
from gpu_runner.supervisor.measure.staging import Batch, draw_id, draw_seed
from gpu_runner.supervisor.runner import preemption
from gpu_runner.supervisor.runner.answer import Answer
from gpu_runner.supervisor.runner.conditions import Conditions
from gpu_runner.supervisor.runner.gate import Handed
from gpu_runner.supervisor.runner.session import Session
from gpu_runner.supervisor.runner.target import Target

T = TypeVar("T")


class Trial:
    """One workload in a process, with one place for each tensor, and inputs that stay the same."""

    def __init__(self, bench: Bench, session: Session, workload: Workload, setup: int) -> None:
        """`setup` is the workload's number in the process."""
        self._bench, self._session, self.workload = bench, session, workload
        self._rng = random.SystemRandom()
        layouts = Layout.draw(bench.described[workload.name], self._rng)
        direction = session.target.direction
        self._batch = Batch.of(workload, direction, layouts, setup, self._rng)

    def share_inputs(self, other: Trial) -> None:
        """From now on, draw what the other's calls get."""
        self._batch = replace(self._batch, seeds=other._batch.seeds)

    def repeat(self, times: int = 1, begin: Callable[[], None] = lambda: None) -> Answer:
        """Make the call so many times; `begin` is called when its inputs are in place."""
        return self._made(wire.Command.REPEAT, times, begin)

    def graph(self) -> Answer:
        """Record the call as a CUDA graph; the next time, launch that. Each has new inputs."""
        self._batch = replace(self._batch, seeds=[draw_seed(self._rng)])
        return self._made(wire.Command.GRAPH, 1, lambda: None)

    def scratch_bytes(self) -> float:
        """What the process says that it took of a device since this was last asked."""
        return self._session.asked(wire.frame(wire.Command.SCRATCH), "between calls")

    @property
    def pid(self) -> int:
        """The process, which stands still between calls."""
        return self._session.pid

    @property
    def output_bytes(self) -> int:
        """Of the call's outputs."""
        return sum(region.nbytes for region in self._batch.layouts[0].outputs)

    def keep(self, answer: Answer, part: Part | None = None) -> str:
        """Copy the last call's outputs to where no runner sees them; a digest of their bits.

        part: of the bits of its items alone.
        """
        layout, bench = self._batch.layouts[0], self._bench
        if self._session.target.python:
            check_returned(answer.done, layout.description)
        offsets = bench.samples.offsets(self.workload.name, 0, Sample.SINGLE)
        bench.memory.sample(layout, offsets, answer.returned)
        outputs = bench.described[(part or self.workload).name].outputs
        sizes = (output.nbytes for output in outputs)
        return bench.oracle.digest(list(zip(offsets, sizes, strict=True)))

    def mismatch(self) -> Mismatch | None:
        """What is wrong with the outputs that were kept; to be asked once the process is gone."""
        kept = Collected(seeds=[*self._batch.seeds], sampled={Sample.SINGLE: {0: 0}})
        return self._bench.verify(self.workload, kept).mismatch

    def _made(self, command: wire.Command, times: int, begin: Callable[[], None]) -> Answer:
        number, call = draw_id(self._rng), self._batch.calls[0]
        request = wire.frame(command, wire.pack_repeat(number, times, call))
        return self._session.again(request, number, call, partial(self._staged, begin))

    def _staged(self, begin: Callable[[], None]) -> Handed:
        is_handed = self._session.target.python
        handed = self._bench.memory.stage(self._batch, handed=is_handed)
        begin()
        return handed


class Trials:
    """Fresh processes for such calls."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self.manners, self.doubt = bench, bench.manners, ""

    @preemption.patient
    def run(
        self,
        target: Target,
        workloads: Sequence[Workload],
        conditions: Conditions,
        ask: Callable[[Sequence[Trial]], T],
    ) -> T:
        """What `ask` finds out. Raises `FaultError` for whatever the process does wrong."""
        bench = self._bench
        bench.samples.prepare({w.name: bench.described[w.name] for w in workloads}, FIRST_CALLS)
        with bench.opened(target, workloads, {}, conditions) as session:
            return ask([Trial(bench, session, w, index) for index, w in enumerate(workloads)])

    def parts(self, workload: Workload, direction: Direction) -> list[Part]:
        """Some of the workload's items alone, which can be run; none if they depend on others."""
        bench, seed = self._bench, draw_seed(random.SystemRandom())
        parts = bench.oracle.parts(workload, direction, seed)
        for part in parts:
            bench.described[part.name] = bench.oracle.describe(part, direction, seed)
        return parts

    def conditions(self, kind: DeviceKind) -> Conditions:
        """Large OpenMP teams on a CPU, as `Bench.untimed`; on a device, its completion counts."""
        return self._bench.untimed() if kind is DeviceKind.CPU else self._bench.conditions()

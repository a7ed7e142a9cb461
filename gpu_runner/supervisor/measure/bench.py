"""The measuring loop: every call is at once a correctness call and a timing call."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

from gpu_runner.data.integrity import Burst
from gpu_runner.data.plan import Plan
from gpu_runner.data.protocol import (
    BURST_SHARE,
    CALLS_BEFORE_BURSTS,
    EMPTY_CALLS,
    LEAST_TEAM,
    MARGINS,
    VARIED_SHARE,
)
from gpu_runner.data.task import Values, Workload
from gpu_runner.data.verdict import DeviceKind, Direction, Verdict
from gpu_runner.supervisor.device.statistics import ESTIMATORS
from gpu_runner.supervisor.host.arena import Arena
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.measure import burst_sizes
from gpu_runner.supervisor.measure.aside import Aside
from gpu_runner.supervisor.measure.collected import Collected, Measured, Verified, counted_time
from gpu_runner.supervisor.measure.conformance import check_returned
from gpu_runner.supervisor.measure.layout import Layout, Sizes, arena_sizes
from gpu_runner.supervisor.measure.outside import EmptyKernelTime, mean_ns
from gpu_runner.supervisor.measure.sampled_outputs import Sample, SampledOutputs
from gpu_runner.supervisor.measure.staging import Batch, Memory, draw_id, draw_seed
from gpu_runner.supervisor.measure.turns import Progress, stays_in_place, whose_turn
from gpu_runner.supervisor.measure.verification import verify
from gpu_runner.supervisor.measure.watch import Watch
from gpu_runner.supervisor.oracle.client import Description, Oracle
from gpu_runner.supervisor.oracle.distributions import InputDistributions
from gpu_runner.supervisor.runner import preemption
from gpu_runner.supervisor.runner.ahead import TorchProcesses
from gpu_runner.supervisor.runner.answer import Answer, Returned
from gpu_runner.supervisor.runner.conditions import Conditions
from gpu_runner.supervisor.runner.faults import Fault, FaultError, keeping_output, naming
from gpu_runner.supervisor.runner.session import Session, Stage
from gpu_runner.supervisor.runner.target import Target
from gpu_runner.supervisor.runner.wrapper import Wrapper


class Bench:
    """What all measured processes of an evaluation share."""

    def __init__(
        self,
        oracle: Oracle,
        memory: Memory,
        samples: Arena,
        config: SupervisorConfig,
        rng: random.Random,
        manners: preemption.Manners | None = None,
    ) -> None:
        """`samples` is the arena that the oracle has inherited; `rng` one that nobody can guess.

        manners: whoever is more urgent gets the device between two calls of a process, which ends.
        """
        self._torch: TorchProcesses | None = None
        self.manners: preemption.Manners = manners or preemption.Undisturbed()
        self._obliging = preemption.Obliging(self.manners, memory.is_roomy)
        self.doubt = ""  # see `Mannered`
        self.oracle, self.memory, self._config, self._rng = oracle, memory, config, rng
        self._fastest_counts = ESTIMATORS[config.kind].fastest
        self.samples = SampledOutputs(samples, rng, held=self._fastest_counts)
        self._empty: Mapping[str, EmptyKernelTime] = {}
        self._left_s = config.measure_timeout_s
        self.must_beat_ns: Mapping[str, float] = {}
        self.watch: Watch | None = None  # over the first process that is timed
        self.described: dict[str, Description] = {}
        self._most, self._sizes = dict[str, int](), (0, 0)
        self._distributions = InputDistributions({}, rng)
        self._direction = Direction.FORWARD

    def use(self, torch: TorchProcesses) -> None:
        """Take torch runners from there, where they were started ahead."""
        self._torch = torch

    def prepare(
        self,
        workloads: Sequence[Workload],
        direction: Direction,
        others: Mapping[str, Sequence[Values]],
    ) -> None:
        """Have every workload described, and set the memory's size for calls, and for bursts.

        others: families of values that calls of a workload may have besides its own, by its name.
        """
        self._direction, self._distributions = direction, InputDistributions(others, self._rng)
        room = burst_sizes.room_bytes(self._config)
        for workload in workloads:
            described = self.oracle.describe(workload, direction, draw_seed(self._rng))
            self.described[workload.name] = described
            self._most[workload.name] = burst_sizes.most_calls(described, self._config.kind, room)
        every = list(self.described.values())
        self._sizes = arena_sizes(every, list(self._most.values()))
        self.memory.begin(*arena_sizes(every, [1] * len(every)), self._batch(workloads[0], 1, 0))

    def know_empty(self, times: Mapping[str, EmptyKernelTime]) -> None:
        """What the supervisor's clock adds, by workload: from now on it looks at these, too."""
        self._empty = {**self._empty, **times}

    @preemption.patient
    def run(
        self,
        target: Target,
        workloads: Sequence[Workload],
        plan: Plan,
        progress: Progress,
        setup: Mapping[str, object] | None = None,
    ) -> Measured:
        """Measure workloads in one fresh process, call by call in random order.

        Raises `FaultError` for whatever the process does wrong.
        """
        self.samples.prepare({w.name: self.described[w.name] for w in workloads}, plan)
        collected = {w.name: self._nothing_yet(w, plan, target) for w in workloads}
        pending = list(workloads)
        idle_ns = max((empty.idle_ns for empty in self._empty.values()), default=0.0)
        conditions = self.conditions(idle_ns, plan.team)
        with self.opened(target, workloads, setup or {}, conditions) as session:
            while pending:
                if self.manners.is_wanted():
                    raise preemption.Interrupted
                workload = whose_turn(pending, collected, self._rng)
                state = collected[workload.name]
                began = time.monotonic()
                with naming(workload.name, self.described[workload.name].names):
                    self._next(session, workload, workloads.index(workload), plan, state)
                if target.library is not None:
                    self._spend(time.monotonic() - began)
                    state.see_that_it_can_win(workload.name, self.must_beat_ns)
                if self._is_done(workload, plan, state):
                    pending.remove(workload)
                calls = sum(c.calls for c in collected.values())
                progress(len(workloads) - len(pending), len(workloads), calls)
            if self.watch is not None and target.library is not None and not plan.team:
                self.watch.over(self, session, workloads, collected)
            session.end()
            return Measured(collected, session.output)

    @preemption.patient
    def run_empty(
        self,
        target: Target,
        workloads: Sequence[Workload],
        bursts: int,
        idle_ns: float = 0.0,
    ) -> dict[str, Collected]:
        """Bursts and a few single calls of a kernel that does nothing, in one fresh process.

        idle_ns: what a call costs a waiting thread. Raises `FaultError` if the process fails.
        """
        found: dict[str, Collected] = {}
        with self.opened(target, workloads, {}, self.conditions(idle_ns)) as session:
            for index, workload in enumerate(workloads):
                if self.manners.is_wanted():
                    raise preemption.Interrupted
                state = found[workload.name] = Collected(most=self._most[workload.name])
                for _ in range(EMPTY_CALLS[self._config.kind]):
                    self._empty_call(session, workload, index, state)
                if bursts == 0:
                    continue
                sizes = [self._rng.randint(1, state.most) for _ in range(bursts)]
                # The first two find code and memory that nobody has touched before.
                made = [self._empty_burst(session, workload, index, n) for n in (1, 1, *sizes)]
                state.bursts += made[2:]
            session.end()
        return found

    @preemption.patient
    def run_profiled(self, target: Target, workloads: Sequence[Workload], ncu: Wrapper) -> str:
        """Two calls of each under the profiler, which looks at the second; what was printed.

        Nothing of them is timed or verified. Raises `FaultError` for whatever goes wrong.
        """
        os.ftruncate(ncu.descriptor, 0)  # of a process that was interrupted
        os.lseek(ncu.descriptor, 0, os.SEEK_SET)
        timeout_s = self._config.profile_timeout_s
        conditions = replace(self.untimed(), is_wanted=self._obliging.is_wanted)
        with self.opened(target, workloads, {}, conditions, (timeout_s, ncu)) as session:
            return self._unjudged(session, workloads, calls=2)

    @preemption.patient
    def run_rehearsal(self, target: Target, workloads: Sequence[Workload]) -> str:
        """As `run_profiled`, a call each, in a process that may compile; see `Aside`."""
        way, limit = self.untimed(), (self._config.build_timeout_s, None)
        with target.workshop as shop, self.opened(target, workloads, {}, way, limit) as session:
            session.onlooker = Aside(self.manners, self.memory, self._config, shop)
            return self._unjudged(session, workloads, calls=1)

    def _unjudged(self, session: Session, workloads: Sequence[Workload], *, calls: int) -> str:
        for index, workload in enumerate(workloads):
            for batch in (self._batch(workload, 1, index) for _ in range(calls)):
                session.call(batch.calls[0], self._stage(session, batch))
        session.end()
        return session.output

    def sizes(self, workload: Workload) -> Sizes:
        """Bytes of a call's tensors."""
        return Sizes.of(self.described[workload.name])

    def verify(self, workload: Workload, collected: Collected) -> Verified:
        """Compare the sampled outputs of a process, which has exited, with the reference."""
        return verify(self.oracle, self.samples, workload, self._direction, collected)

    def _spend(self, seconds: float) -> None:
        """Raise `FaultError` once the calls of all of a submission's processes took too long."""
        self._left_s -= seconds
        if self._left_s < 0:
            limit = self._config.measure_timeout_s
            reason = f"its calls take too long: we stopped measuring after {limit:g} s"
            raise FaultError(Fault(Verdict.TIME_LIMIT, reason))

    def _nothing_yet(self, workload: Workload, plan: Plan, target: Target) -> Collected:
        most = self._most[workload.name]
        is_clocked = workload.name in self._empty and self._config.kind is DeviceKind.CUDA
        sizes = burst_sizes.draw_sizes(most, plan.bursts if is_clocked else 0, self._rng)
        if target.python:  # the largest comes first: later ones find memory for their outputs
            sizes.sort()
        enough_ns = 0.0 if self._fastest_counts else plan.enough_ns
        return Collected(sizes=sizes, most=most, enough_ns=enough_ns)

    def _next(
        self, session: Session, workload: Workload, setup: int, plan: Plan, state: Collected
    ) -> None:
        """A single call, or a burst where one is left, or other values; as the draw falls."""
        single = not state.is_timed(plan)
        if not single and not state.sizes and state.is_cut:
            state.sizes += burst_sizes.draw_sizes(state.most, 1, self._rng)
        varied = plan.varied > 0 and self._distributions.has(workload)
        if varied and (self._rng.random() < VARIED_SHARE or not (single or state.sizes)):
            self._other_values(session, self._distributions.draw(workload), setup, state)
            return
        early = len(state.seeds) < CALLS_BEFORE_BURSTS or not state.sizes
        if single and (early or self._rng.random() > BURST_SHARE):
            began = time.monotonic()
            self._single(session, workload, setup, state)
            if len(state.seeds) > 1:  # the first call may load and allocate what later ones use
                state.spent_s += time.monotonic() - began
            if plan.near and state.calls == 1 and self._distributions.has_near(workload):
                near = replace(workload, values=Values.NEAR)
                self._other_values(session, near, setup, state)
        else:
            self._burst(session, workload, setup, state)

    def _is_done(self, workload: Workload, plan: Plan, state: Collected) -> bool:
        enough = not self._distributions.has(workload) or len(state.varied) >= plan.varied
        return state.is_timed(plan) and not state.sizes and enough and not state.is_cut

    def one_call(
        self, session: Session, workload: Workload, setup: int, state: Collected
    ) -> tuple[Batch, Answer]:
        """A call with new content; what it does wrong is raised."""
        layouts = state.layouts if stays_in_place(state.calls, self._rng) else ()
        batch = self._batch(workload, 1, setup, layouts)
        if workload.values is Values.NEAR:
            batch = replace(batch, seeds=state.seeds[-1:])
        state.layouts = batch.layouts
        answer = session.call(batch.calls[0], self._stage(session, batch))
        if session.target.python:
            check_returned(answer.done, batch.layouts[0].description)
        self.memory.check(batch)
        return batch, answer

    def _other_values(
        self, session: Session, varied: Workload, setup: int, state: Collected
    ) -> None:
        """A call like any other, with values that the workload is not drawn with."""
        batch, answer = self.one_call(session, varied, setup, state)
        index = len(state.varied)
        state.add_varied(varied.values, batch.seeds[0], answer.done.time_ns)
        slot = self.samples.draw_slot(varied.name, index, Sample.VARIED)
        if slot is not None:
            self.retain(state, batch, 0, (Sample.VARIED, slot, index), answer.returned)

    def _single(self, session: Session, workload: Workload, setup: int, state: Collected) -> None:
        batch, answer = self.one_call(session, workload, setup, state)
        margin = MARGINS[self._config.kind, session.target.abi]
        counted_ns = counted_time(answer, self._empty.get(workload.name), margin)
        extremes = state.new_extremes(answer, counted_ns, held=self._fastest_counts)
        state.add(answer, counted_ns)
        state.seeds.extend(batch.seeds)
        # Drawn only now that the call is acknowledged.
        index = len(state.seeds) - 1
        drawn = self.samples.draw_slot(workload.name, index, Sample.SINGLE)
        slots = dict.fromkeys(extremes, 0) | ({} if drawn is None else {Sample.SINGLE: drawn})
        for sample, slot in slots.items():
            self.retain(state, batch, 0, (sample, slot, index), answer.returned)

    def _burst(self, session: Session, workload: Workload, setup: int, state: Collected) -> None:
        drawn = state.sizes.pop()
        size = burst_sizes.affordable(drawn, state.counted_ns)
        batch = self._batch(workload, size, setup)
        stage = partial(self.memory.stage, batch)
        held_ns = session.burst(draw_id(self._rng), batch.calls, stage).held_ns
        self.memory.check(batch)
        burst = Burst(calls=size, held_ns=held_ns, large=2 * drawn >= state.most)
        empty = self._empty.get(workload.name)
        mean = mean_ns(burst, empty) if empty is not None else held_ns / size
        least = state.add_burst(burst, mean)
        for turn, place in enumerate(self._rng.sample(range(size), size)):
            state.burst_seeds.append(batch.seeds[place])
            index = len(state.burst_seeds) - 1
            slot = self.samples.draw_slot(workload.name, index, Sample.BURST)
            if slot is not None:
                self.retain(state, batch, place, (Sample.BURST, slot, index))
            if least and turn < self.samples.slots(workload.name, Sample.LEAST_BURST):
                self.retain(state, batch, place, (Sample.LEAST_BURST, turn, index))

    def retain(
        self,
        state: Collected,
        batch: Batch,
        place: int,
        where: tuple[Sample, int, int],
        returned: Returned | None = None,
    ) -> None:
        """Take the outputs of the call at a place of its batch: reason, slot, and its index."""
        sample, slot, index = where
        offsets = self.samples.offsets(batch.workload.name, slot, sample)
        self.memory.sample(batch.layouts[place], offsets, returned)
        state.sampled.setdefault(sample, {})[slot] = index

    def _empty_call(
        self, session: Session, workload: Workload, setup: int, state: Collected
    ) -> None:
        batch = self._batch(workload, 1, setup)
        answer = session.call(batch.calls[0], self._stage(session, batch))
        state.add(answer, answer.done.time_ns)
        state.others_ns += session.others_ns

    def _empty_burst(self, session: Session, workload: Workload, setup: int, size: int) -> Burst:
        batch = self._batch(workload, size, setup)
        stage = partial(self.memory.stage, batch, drawn=False)
        answer = session.burst(draw_id(self._rng), batch.calls, stage)
        return Burst(calls=size, held_ns=answer.held_ns)

    def _stage(self, session: Session, batch: Batch) -> Stage:
        return partial(self.memory.stage, batch, handed=session.target.python)

    def _batch(
        self, workload: Workload, count: int, setup: int, layouts: Sequence[Layout] = ()
    ) -> Batch:
        layouts = layouts or Layout.draw(self.described[workload.name], self._rng, count)
        return Batch.of(workload, self._direction, layouts, setup, self._rng)

    @contextmanager
    def opened(
        self,
        target: Target,
        workloads: Sequence[Workload],
        setup: Mapping[str, object],
        conditions: Conditions,
        untimed: tuple[float, Wrapper | None] | None = None,
    ) -> Iterator[Session]:
        """A fresh process that is ready for calls of these workloads.

        untimed: how long each call may take of which no time is kept, and what wraps the process.
        """
        config, wrapper = self._config, None
        if untimed is None:
            self.memory.grow(*self._sizes)
        else:
            timeout_s, wrapper = untimed
            config = replace(config, call_timeout_s=timeout_s, start_timeout_s=timeout_s)
        with (
            self.memory.watched(),
            Session(target, self.memory.arenas, config, wrapper, conditions) as session,
            keeping_output(session),
        ):
            session.ready()
            for workload in workloads if target.python else ():
                told = self.described[workload.name].as_setup(workload.name, self._direction)
                session.setup({**told, **setup})
            yield session

    def untimed(self) -> Conditions:
        """What surrounds a process of which no time is kept."""
        return replace(self.conditions(team=LEAST_TEAM), completion=nullcontext)

    def conditions(self, idle_ns: float = 0.0, team: int = 0) -> Conditions:
        """What surrounds a process that is measured."""
        return Conditions(
            completion=self.memory.completion,
            idle_ns=idle_ns,
            is_wanted=self.manners.is_wanted,
            withdraw=self.memory.withdraw,
            torch=self._torch,
            team=team,
        )

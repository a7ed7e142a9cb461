"""Watches some calls of a process at work, once all that are timed are over."""

from __future__ import annotations

import math
import random
import time
from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu_runner.data.protocol import LEAST_WATCHED, LOOKING_S, WATCHED_SLOWER
from gpu_runner.data.task import Workload
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.measure.collected import Collected
from gpu_runner.supervisor.measure.sampled_outputs import Sample
from gpu_runner.supervisor.measure.staging import Batch
from gpu_runner.supervisor.runner.answer import Answer
from gpu_runner.supervisor.runner.session import Session
from gpu_runner.supervisor.work.attribution import Attribution, Worked, told_name
from gpu_runner.supervisor.work.onlooker import Onlooker
from gpu_runner.supervisor.work.told import is_of_libraries, is_told

if TYPE_CHECKING:
    from gpu_runner.supervisor.measure.bench import Bench

_LONG_NS = 1e8  # chosen: of calls that take so long, three are watched
_UNSEEN_SHARE = 0.3  # chosen: some of the first calls already
_LEAST_OWN = 3  # chosen: a host that met less of a kernel's own work has met too little of any
_BRIEFLY_S, _BRIEFLY = (0.2, 0.8), 3  # chosen: three looks at a library tell on a busy host, too
_LEAST_UNSEEN = 3  # chosen: the quickest of fewer calls may have met others of the host


class Watch:
    """Watches processes of an evaluation, one after another.

    On a GPU until it is told who does the work; a profiler tells more there. On a CPU it looks at
    each, and at several workloads, unlisted ones too: a kernel may call a library in some alone.
    Some calls among them are not looked at. They have to be as quick as those that were timed:
    a kernel that works otherwise while it is watched shows in that.
    """

    def __init__(self, ours: Collection[str], kind: DeviceKind) -> None:
        """`ours` are files of ours that the process has loaded."""
        self.worked: Worked | None = None
        self._ours, self._kind = ours, kind
        self._rng = random.SystemRandom()

    def over(
        self,
        bench: Bench,
        session: Session,
        workloads: Sequence[Workload],
        collected: Mapping[str, Collected],
    ) -> None:
        """Watch calls of timed ones of these workloads, of which so much was collected."""
        on_cpu = self._kind is DeviceKind.CPU
        timed = [w for w in workloads if w.timed and (on_cpu or not w.hidden)]
        enough = is_of_libraries if on_cpu else is_told
        if not timed or (self.worked is not None and enough(self.worked)):
            return
        held_ns = {w.name: min(collected[w.name].held_ns) for w in timed}
        first = min(timed, key=lambda w: _suits(held_ns[w.name]))
        others = [workload for workload in timed if workload is not first] if on_cpu else []
        for workload in (first, *self._rng.sample(others, min(len(others), _BRIEFLY))):
            rounds = self._rounds() if workload is first else _BRIEFLY_S
            place = workloads.index(workload)
            worked = self._watched(
                bench, session, workload, place, collected[workload.name], rounds
            )
            if workload is first or is_of_libraries(worked):
                self._note(worked)
            if is_of_libraries(worked):
                return

    def _note(self, worked: Worked) -> None:
        """Add what was seen of a workload; a library's work is not measured by that of others."""
        if self.worked is not None and is_of_libraries(worked):
            worked = replace(worked, slower=max(worked.slower, self.worked.slower))
        elif self.worked is not None:
            worked = self.worked.with_more(worked)
        self.worked = worked

    def _watched(
        self,
        bench: Bench,
        session: Session,
        workload: Workload,
        place: int,
        timed: Collected,
        rounds: Sequence[float],
    ) -> Worked:
        """Watch calls of the workload at that place, for as many of these seconds as it takes.

        Calls that seem slow get as long as any, because a busy host slows some down. A quarter of
        them must be as quick as a quarter of those that were timed: a library could make a few.
        """
        spare, onlooker = Collected(), Onlooker(call_s=min(timed.counted_ns) / 1e9)
        unseen = _Unseen(sorted(timed.held_ns))
        began = time.monotonic()
        worked = Worked()
        for round_s in (*rounds, LOOKING_S[-1]):
            while time.monotonic() - began < round_s and (
                unseen.seem_slow or not onlooker.has_seen_enough
            ):
                session.onlooker = None if self._rng.random() < _UNSEEN_SHARE else onlooker
                batch, answer = bench.one_call(session, workload, place, spare)
                _keep(bench, timed, batch, answer)
                if session.onlooker is None:
                    unseen.note(onlooker, answer)
            worked = self._attributed(onlooker, workload)
            is_late = round_s == rounds[-1] or unseen.is_late(worked, rounds, round_s)
            is_told_all = is_late or onlooker.has_seen_enough or is_told(worked)
            if is_told_all and not unseen.seem_slow:
                break
        session.onlooker = None
        worked.slower = unseen.slower
        return worked

    def _rounds(self) -> Sequence[float]:
        """A GPU's host is soon seen calling a library; how much that did, a profiler tells."""
        if self.worked is not None:
            return LOOKING_S[:1]
        return LOOKING_S if self._kind is DeviceKind.CPU else LOOKING_S[:2]

    def _attributed(self, onlooker: Onlooker, workload: Workload) -> Worked:
        worked = Attribution(onlooker.codes.found, self._ours).of(onlooker.looks)
        worked.workload = told_name(workload)
        return worked


class _Unseen:
    """Times of the calls in between that nobody looks at, compared with those that were timed."""

    def __init__(self, timed_ns: Sequence[float]) -> None:
        """timed_ns: the shortest first."""
        self._usual_ns = max(_quartile(timed_ns), 1.0)
        self._took_ns: list[float] = []

    def note(self, onlooker: Onlooker, answer: Answer) -> None:
        """Add a call; it also tells the onlooker when to look."""
        insort(self._took_ns, answer.held_ns)
        onlooker.answered_s = min(onlooker.answered_s, answer.wall_ns / 1e9)
        onlooker.gate_s = min(onlooker.gate_s or math.inf, (answer.gate_ns or 0.0) / 1e9)

    @property
    def slower(self) -> float:
        """How many times as long their quickest quarter takes as that of the timed ones."""
        if len(self._took_ns) < _LEAST_UNSEEN:
            return 1.0
        return _quartile(self._took_ns) / self._usual_ns

    @property
    def seem_slow(self) -> bool:
        """Whether that is suspicious."""
        return self.slower > WATCHED_SLOWER

    def is_late(self, worked: Worked, rounds: Sequence[float], round_s: float) -> bool:
        """Whether a process at its own work has been watched for long enough."""
        is_own = worked.own >= _LEAST_OWN and not worked.libraries
        is_slow = len(self._took_ns) < LEAST_WATCHED * _UNSEEN_SHARE
        return is_own and (rounds is _BRIEFLY_S or (round_s >= LOOKING_S[-2] and not is_slow))


def _quartile(ordered_ns: Sequence[float]) -> float:
    return ordered_ns[len(ordered_ns) // 4]


def _keep(bench: Bench, timed: Collected, batch: Batch, answer: Answer) -> None:
    """Have some of these calls verified, too: a part of the work could pose as all of it."""
    timed.watched_seeds += batch.seeds
    index = len(timed.watched_seeds) - 1
    slot = bench.samples.draw_slot(batch.workload.name, index, Sample.WATCHED)
    if slot is not None:
        bench.retain(timed, batch, 0, (Sample.WATCHED, slot, index), answer.returned)


def _suits(took_ns: float) -> tuple[bool, float]:
    """The longest calls tell most, but for those that are too long."""
    return took_ns > _LONG_NS, took_ns if took_ns > _LONG_NS else -took_ns

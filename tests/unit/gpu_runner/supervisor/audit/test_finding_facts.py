"""A fact that can't be measured stays unknown, with the reason; it fails nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpu_runner.data.facts import NAMES
from gpu_runner.data.task import Part, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Verdict
from gpu_runner.supervisor.audit import facts
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.runner.faults import Fault, FaultError
from gpu_runner.supervisor.runner.preemption import Interrupted
from gpu_runner.supervisor.runner.target import Target

SMALL, LARGE = (Workload(name=n, parameters={"N": i}) for i, n in enumerate(("small", "large")))
WRONG_CALL = FaultError(Fault(Verdict.RUNTIME_ERROR, "cudaErrorStreamCaptureUnsupported"))
NO_MEMORY = FaultError(Fault(Verdict.MEMORY_LIMIT, "out of memory"))


class FakeTrial:
    """A process's calls; a step that is named fails."""

    def __init__(self, workload: Workload, failing: dict[str, Exception]) -> None:
        self.workload, self._failing = workload, failing
        self.output_bytes, self.digests, self.wrong = 0, ["same"], None
        self.made = 0

    def repeat(self, times: int = 1, begin: Callable[[], None] = lambda: None) -> Any:
        begin()
        self.made += 1
        self._fail("repeat")
        return SimpleNamespace(wall_ns=times * 1e6)

    def graph(self) -> None:
        self._fail("graph")

    def share_inputs(self, other: object) -> None:
        pass

    def keep(self, answer: object, part: object = None) -> str:
        self._fail("keep")
        return self.digests[self.made % len(self.digests)]

    def scratch_bytes(self) -> float:
        self._fail("scratch")
        return 4096.0

    def mismatch(self) -> object:
        return self.wrong

    def _fail(self, step: str) -> None:
        if step in self._failing:
            raise self._failing[step]


@pytest.fixture
def find(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def found(
        wrong: object = None,
        digests: Sequence[str] = ("same",),
        parts: Sequence[Part] = (),
        alone: str = "same",
        **failing: Exception,
    ) -> Any:
        made = [FakeTrial(SMALL, {}), FakeTrial(LARGE, failing)]
        made[1].wrong, made[1].digests = cast(Any, wrong), list(digests)

        def run(target: Target, chosen: Sequence[Workload], conditions: None, ask: Any) -> Any:
            tried = made if not parts or chosen[1:] != [*parts] else [made[1], *of_parts]
            return ask(tried)

        of_parts = [FakeTrial(part, {}) for part in parts]
        for each in of_parts:
            each.digests = [alone]
        trials = SimpleNamespace(
            conditions=lambda kind: None, run=run, parts=lambda workload, direction: [*parts]
        )
        monkeypatch.setattr(facts, "Trials", lambda bench: trials)

        def counter(config: object) -> Callable[[], float]:
            if "counter" in failing:
                raise failing["counter"]
            return lambda: 0.0

        monkeypatch.setattr(facts, "counter", counter)
        monkeypatch.setattr(
            facts, "Metered", lambda joules: SimpleNamespace(begin=int, end=lambda: (6.0, 0.1))
        )
        bench: Any = SimpleNamespace(sizes=lambda w: SimpleNamespace(tensors=w.parameters["N"]))
        config = SupervisorConfig(kind=DeviceKind.CUDA)
        target = Target(Abi.C, Direction.FORWARD)
        finder = facts.FactFinder(config, bench, target, {"small": 1e3, "large": 1e6})
        return finder.find([LARGE, SMALL])

    return found


def test_all_are_told(find: Callable[..., Any]) -> None:
    found = find()
    assert (found.same_bits, found.graph, found.scratch_bytes) == (True, True, 4096)
    assert found.energy_joules == pytest.approx(6.0 / (facts._ENERGY_S * 1000))
    assert (found.energy_error, found.workload) == (0.1, "large")
    assert set(found.said) == set(NAMES)


def test_items_alone_are_compared_with_the_same_items_in_the_batch(
    find: Callable[..., Any],
) -> None:
    parts = [Part.of(LARGE, "N", 1)]
    assert find(parts=parts).batch_bits is True
    assert find(parts=parts, alone="other").batch_bits is False
    assert find().batch_bits is None
    assert find(parts=parts, digests=("a", "b")).batch_bits is None  # they differ anyway


def test_a_call_that_cannot_be_recorded_works_in_no_graph(find: Callable[..., Any]) -> None:
    found = find(graph=WRONG_CALL)
    assert found.graph is False
    assert "StreamCapture" in found.said["graph"]
    assert find(graph=NO_MEMORY).graph is None


def test_a_replay_must_be_right(find: Callable[..., Any]) -> None:
    found = find(wrong="a mismatch")
    assert (found.graph, found.said["graph"]) == (False, "its replay is wrong")


def test_a_process_that_fails_leaves_later_facts_unknown(find: Callable[..., Any]) -> None:
    found = find(keep=WRONG_CALL)
    assert (found.same_bits, found.graph, found.energy_joules) == (None, None, None)
    assert found.scratch_bytes == 4096
    assert found.said["graph"] == "its process ended first"


def test_what_nobody_expected_fails_no_audit(find: Callable[..., Any]) -> None:
    found = find(scratch=ValueError("odd"))
    assert found.scratch_bytes is None
    assert found.said["scratch_bytes"] == "this host could not measure it"
    assert found.same_bits is True


def test_somebody_more_urgent_interrupts_it(find: Callable[..., Any]) -> None:
    with pytest.raises(Interrupted):  # `Trials.run` begins anew then
        find(scratch=Interrupted())

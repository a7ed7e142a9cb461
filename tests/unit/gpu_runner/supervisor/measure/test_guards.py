"""A write beside an output is told with its workload, unless that is hidden."""

from __future__ import annotations

import random

import pytest

from gpu_runner.data.task import Workload
from gpu_runner.supervisor.host.arena import Poison
from gpu_runner.supervisor.measure.conformance import check_guards
from gpu_runner.supervisor.measure.layout import Layout
from gpu_runner.supervisor.oracle.client import Description, OutputSpec
from gpu_runner.supervisor.runner.faults import FaultError

OUTPUT = OutputSpec("out", "float32", (4,), (1,), 16)


@pytest.mark.parametrize(
    ("hidden", "at", "words"),
    [
        (False, "behind", "wrote out of bounds: behind its output 'out' on n4"),
        (True, "before", "wrote out of bounds: before its output 'out' on a hidden workload"),
    ],
)
def test_the_workload_is_named(hidden: bool, at: str, words: str) -> None:
    rng = random.Random(7)
    [layout] = Layout.draw(Description((), (OUTPUT,)), rng)
    [region] = layout.outputs
    outputs, poison = memoryview(bytearray(region.end + (1 << 20))), Poison(rng)
    poison.fill(outputs, 0, len(outputs))
    workload = Workload(name="n4", parameters={}, hidden=hidden)
    check_guards(outputs, poison, layout, workload)
    outputs[region.end if at == "behind" else region.offset - 1] ^= 1
    with pytest.raises(FaultError) as caught:
        check_guards(outputs, poison, layout, workload)
    assert caught.value.fault.reason == words

"""Every task passes what honest arithmetic gives, on calls that are new in each run."""

from __future__ import annotations

import math
import random
import warnings
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch

from gpu_runner.data.task import Values
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.engine.soundness.families.contractions import Instead, at_the_end, reduced
from gpu_runner.engine.soundness.families.sums import serial
from gpu_runner.engine.soundness.mutants import Call
from gpu_runner.engine.soundness.operations import Interpreter, Step
from tests.bench.families import Found, Places, try_all, ways
from tests.unit.catalog.judging import problem, task
from tests.unit.catalog.test_tasks import NAMES

pytestmark = pytest.mark.each_task

DRAWS = 1
DIRECTIONS = [(name, direction) for name in NAMES for direction in task(name).directions]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "direction"), DIRECTIONS)
def test_honest_families_are_right(name: str, direction: Direction) -> None:
    """`python -m tests.bench.families` makes a thousand draws of each task."""
    seed = random.SystemRandom().getrandbits(62)
    rng, places = random.Random(seed), Places(name, direction)
    found: dict[str, Found] = defaultdict(Found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse tensors are in beta
        for _ in range(DRAWS):
            try_all(places.call(rng), ways(), found)
    assert {"reference", "in parts"} <= set(found)
    wrong = {way: each.where for way, each in found.items() if each.refused}
    assert wrong == {}, f"with the seed {seed}"


def one_by_one_in_one_pass(step: Step) -> Any:
    """A variance as the mean of the squares less the squared mean, each a serial sum."""
    if step.name != "var_mean":
        return None
    terms = at_the_end(step.args[0], reduced(step))
    mean, squares = (serial(each) / terms.shape[-1] for each in (terms, terms * terms))
    variance = (squares - mean * mean).clamp(min=0)
    return tuple(
        part.reshape(each.shape) for part, each in zip((variance, mean), step.result, strict=True)
    )


def by_tanh(step: Step) -> Any:
    """A sigmoid by way of tanh: far below zero nothing is left of it but rounding."""
    return torch.tanh(step.args[0] / 2) / 2 + 0.5 if step.name == "sigmoid" else None


def by_instruction(step: Step) -> Any:
    """tanh.approx of GPUs, which is what `--use_fast_math` makes of tanhf: off by 2^-11."""
    return step.result * (1 + 2**-11) if step.name == "tanh" else None


def approximated(step: Step) -> Any:
    """GELU's other definition, by tanh."""
    if step.name != "erf":
        return None
    x = step.args[0] * 2**0.5
    return torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))


DISHONEST: dict[str, tuple[str, Values, Instead]] = {
    "one pass": ("batch_norm", Values.SHIFTED, one_by_one_in_one_pass),
    "sigmoid by tanh": ("sigmoid", Values.DRAWN, by_tanh),
    "tanh.approx": ("row_tanh", Values.DRAWN, by_instruction),
    "GELU by tanh": ("gelu", Values.DRAWN, approximated),
}


@pytest.mark.parametrize("way", DISHONEST)
def test_what_has_a_real_error_is_refused_in_each_evaluation(way: str) -> None:
    """What docs/bounds.md names; an evaluation makes more calls than these."""
    name, values, instead = DISHONEST[way]
    public = [w for w in task(name).workloads if DeviceKind.CPU in w.devices and not w.hidden]
    workload = max(public, key=lambda w: w.parameters["N"])
    refused = 0
    for seed in range(8):
        place = replace(workload, values=values)
        call = Call(problem(name), place, Direction.FORWARD, seed, "cpu")
        refused += call.judge(call.run(Interpreter(instead=instead)))[0]
    assert refused == 8

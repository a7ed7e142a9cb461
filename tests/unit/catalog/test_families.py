"""Every task passes what honest arithmetic gives, and its stored proof holds in a sample."""

from __future__ import annotations

import json
import math
import random
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.task import Values, Workload
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.engine.soundness.families.contractions import Instead, at_the_end, reduced
from gpu_runner.engine.soundness.families.sums import serial
from gpu_runner.engine.soundness.filters import facts_of
from gpu_runner.engine.soundness.mutants import Call
from gpu_runner.engine.soundness.operations import Interpreter, Step
from gpu_runner.engine.soundness.soundness import Soundness
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.soundness import filters
from tests.bench.families import Found, Places, try_all, ways
from tests.unit.catalog.judging import problem, task
from tests.unit.catalog.test_tasks import NAMES

DRAWS = 1
DIRECTIONS = [(name, direction) for name in NAMES for direction in task(name).directions]


@pytest.mark.each_task
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


@pytest.mark.each_task
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


OWN_MARGIN = 0.5
"""Share of its bound that the reference may need, in the task's own precision."""
MARGIN = 0.8
"""The same of other honest kernels: they take ways that lose more, and a library rounds to a narrow
dtype where it likes."""
SEEDS = range(101, 107)
MOST_HIDDEN = 7
LEAST_FAILED, LEAST_PASSED = 10, 5
"""Wrong kernels and filters of each direction that a report counts at least."""
OTHERWISE = {"histogram": "skew", "batched_cholesky": "condition"}
"""Tasks whose inputs no family changes, or which it spoils: a parameter draws them otherwise."""


def report(name: str) -> dict[str, Any]:
    path = catalog_folder().with_name("catalog_soundness") / f"{name}.json"
    document: dict[str, Any] = json.loads(path.read_text())
    return document


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_of_this_task_and_without_survivors(name: str) -> None:
    found = report(name)
    assert found["digest"] == task(name).digest(), (
        f"make it again: python -m gpu_runner filter --task {name} "
        f"--brief --json tasks_app/catalog_soundness/{name}.json"
    )
    assert found["passed"]
    assert found["survivors"] == []
    assert [entry["name"] for entry in found["filters"] if entry["passed"] is False] == []
    assert set(found["unlisted"]) == set(task(name).directions)
    for counts in found["unlisted"].values():
        assert sum(counts["failed"].values()) >= LEAST_FAILED
        assert counts["passed"] >= LEAST_PASSED


@pytest.mark.parametrize("name", NAMES)
def test_honest_kernels_keep_a_distance_from_the_bounds(name: str) -> None:
    for entry in report(name)["honest"]:
        own = entry["name"] in ("reference", "in parts")
        assert entry["scaled"] <= (OWN_MARGIN if own else MARGIN), entry["name"]


@pytest.mark.parametrize("name", NAMES)
def test_a_report_judges_what_is_timed_in_place_of_the_reference(name: str) -> None:
    judged = {e["direction"] for e in report(name)["honest"] if e["name"] == "baseline_fn"}
    own = problem(name)
    assert judged == {d for d in task(name).directions if own.has_baseline(d)}


@pytest.mark.sampled(7)
@pytest.mark.each_task
@pytest.mark.parametrize("name", NAMES)
def test_filters_of_today_flag_nothing_on_a_small_workload(name: str) -> None:
    """Found anew, not read from the report: a filter may have changed since that was made."""
    data, own = task(name), problem(name)

    def facts(workload: Workload, direction: Direction, seeds: Sequence[int]) -> dict[str, Any]:
        return facts_of(own, workload, direction, seeds, "cpu")

    for direction in data.directions:
        workloads = data.workloads_for(DeviceKind.CPU, direction, hidden=False)
        smallest = min(workloads, key=lambda w: getattr(data.cost(w, direction), "bytes", 0.0))
        findings = filters.find(data, direction, [smallest], facts, SupervisorConfig())
        # Whether eager is slow is a matter of time, which other tests beside this one disturb.
        found = {f["name"] for f in findings if f["passed"] is False}
        assert found <= {"baseline"}
        listed = [e for e in report(name)["filters"] if e["direction"] == direction]
        asked = len(listed) + report(name)["unlisted"][direction]["passed"]
        # A small workload may have axes of one element, and numbers that are sizes there, too.
        axes = sum(f["name"].startswith("output axis") for f in findings)
        assert len(findings) - axes <= asked
        assert {e["name"] for e in listed} <= {f["name"] for f in findings}


@pytest.mark.sampled(7)
@pytest.mark.each_task
@pytest.mark.parametrize("name", NAMES)
def test_mutants_fail_where_the_report_says_so(name: str) -> None:
    """As many as it says on one workload in each direction, of which most of the report speaks."""
    soundness = Soundness(problem(name), "cpu")
    for direction in task(name).directions:
        counts = report(name)["unlisted"][direction]["failed"]
        workload_name = max(counts, key=counts.__getitem__)
        workload = next(w for w in task(name).workloads if w.name == workload_name)
        listed = {e["name"] for e in report(name)["mutants"] if e["direction"] == direction}
        failed: set[str] = set()
        met: set[str] = set()
        for seed in SEEDS:
            settled = failed | listed
            for mutant, state, _ in soundness.step(workload, direction, seed, settled)["mutants"]:
                met.add(mutant)
                if state == "failed":
                    failed.add(mutant)
            if len(failed) >= counts[workload_name]:
                break
        assert len(met) <= sum(counts.values()), "the report is older than a wrong kernel"
        assert len(failed) >= counts[workload_name]


@pytest.mark.parametrize("kind", DeviceKind)
@pytest.mark.parametrize("name", NAMES)
def test_hidden_workloads_are_few_and_of_several_families(name: str, kind: DeviceKind) -> None:
    for direction in task(name).directions:
        everything = task(name).workloads_for(kind, direction, hidden=True)
        hidden = [w for w in everything if w.hidden and not w.unlisted]
        assert len(hidden) <= MOST_HIDDEN
        if name in OTHERWISE:
            assert len({w.parameters[OTHERWISE[name]] for w in hidden}) >= 3
            continue
        families = {w.values for w in hidden} - {Values.DRAWN}
        assert len(families) >= 3
        assert {Values.LARGE, Values.STRUCTURED} & families
        assert all(w.values is Values.DRAWN for w in everything if not w.hidden)


@pytest.mark.parametrize("name", ["dot_product", "matrix_mul", "unet_conv2d", "vector_add"])
def test_the_bound_of_integers_leaves_nothing_but_the_exact_result(name: str) -> None:
    """Polynomials of integers are integers: a bound below one half forgives nothing."""
    direction = Direction.FORWARD
    for workload in task(name).workloads_for(DeviceKind.CPU, direction, hidden=True):
        if workload.values is Values.INTEGERS:
            key = (workload, direction, 1, "cpu")
            expected = problem(name).expected(*key)
            scales = problem(name).scale(*key, expected)
            (output,) = expected
            scale = scales[0] if scales else output.abs() + output.square().mean().sqrt()
            tolerance, length = task(name).tolerance, task(name).reduction_length(workload)
            factor = tolerance.constant + tolerance.growth * length**0.5
            assert (output == output.round()).all()
            assert output.abs().max() > 1
            assert (scale * factor * 2**-23 < 0.5).all()

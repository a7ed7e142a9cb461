"""When a mutant counts as failed, and what a report says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data.formats import load_task
from gpu_runner.data.verdict import DeviceKind, Direction
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.soundness.outcomes import Outcome, Tried, sense
from gpu_runner.supervisor.soundness.soundness import (
    brief,
    describe_soundness,
    one_entry_a_line,
    survey,
)

TASK = """
name = "double"
title = "Double"
abi = "torch"
dtype = "float32"

[tolerance]
constant = 1e5

[[workloads]]
name = "n8"
parameters = { n = 8 }
"""

REFERENCE = """
import torch

def make_inputs(n):
    return {"x": torch.randn(n)}

def forward_fn(x):
    return x * 2
"""


def outcome(*states: str, verified: int = 45) -> Outcome:
    found = Outcome()
    for state in states:
        found.add("w", verified, state, 1.5)
    return found


@pytest.mark.parametrize(
    ("states", "verified", "state"),
    [
        ("failed failed failed", 45, "failed"),
        ("failed passed passed", 45, "failed"),  # 45 verified calls
        ("failed passed passed", 6, "survived"),
        ("failed failed failed", 6, "failed"),
        ("passed passed", 45, "survived"),
        ("same same", 45, "equivalent"),  # only what never differs
        ("same passed", 45, "survived"),
    ],
)
def test_a_mutant_fails_if_it_would_hardly_pass_a_ranked_evaluation(
    states: str, verified: int, state: str
) -> None:
    assert outcome(*states.split(), verified=verified).state() == state


def test_a_mutant_is_tried_on_some_calls_of_all_workloads_before_it_is_settled() -> None:
    assert not outcome("failed").settled(3)
    assert outcome("failed", "failed", "failed").settled(3)
    for everywhere, state in ((("w",), "equivalent"), (("w", "larger"), "untried")):
        entry = outcome("same").document("t 1: removed", Direction.FORWARD, everywhere)
        assert entry["state"] == state


def test_an_entry_names_the_workload_on_which_it_fails_most_surely() -> None:
    found = outcome("failed", "passed")
    for _ in range(3):
        found.add("other", 45, "failed", 7.0)
    assert found.document("zeros", Direction.FORWARD, ("w", "other", "third")) == {
        "name": "zeros", "direction": "forward", "state": "failed", "workload": "other",
        "scaled": 7.0,
    }  # fmt: skip


def test_calls_with_other_values_may_settle_a_mutant_and_are_not_named() -> None:
    found = outcome("passed", "passed", "passed")
    for public in ("w", "larger", "largest"):
        for _ in range(9):
            found.add(public, 1, "failed", 7.0, "heavy")
    entry = found.document("half the largest", Direction.FORWARD, ("w", "larger", "largest"))
    assert (entry["state"], entry["workload"]) == ("failed", "w, other values")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "reference.py").write_text(REFERENCE)
    return tmp_path


def test_a_survey_of_a_task_whose_bound_is_too_loose(folder: Path) -> None:
    task = load_task(folder)
    report = survey(task, SupervisorConfig(kind=DeviceKind.CPU), seeds=2, most_seeds=3)
    assert json.loads(json.dumps(report)) == report
    assert report["digest"] == task.digest()
    assert not report["passed"]
    assert "forward: inputs in TF32" in report["survivors"]
    assert "forward: zeros" not in report["survivors"]
    assert {entry["name"] for entry in report["honest"]} >= {"reference"}
    assert "NOT SOUND" in describe_soundness(report)


def entry(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "direction": "forward", "workload": "n8", **more}


def test_a_brief_report_lists_what_may_be_doubted_and_counts_the_rest() -> None:
    report = {
        "passed": False,
        "mutants": [
            entry("zeros", state="failed"),
            entry("ones", state="failed", workload="n9"),
            entry("half", state="survived"),
            entry("same", state="equivalent"),
        ],
        "honest": [
            entry("reference", scaled=0.1),
            entry("in parts", scaled=0.2),
            entry("backwards", scaled=0.4),
            entry("in pieces", scaled=0.3, reason="wrong as a whole"),
        ],
        "filters": [
            entry("range", passed=True),
            entry("work", passed=False),
            entry("b", passed=None),
        ],
    }
    found = brief(report)
    names = {key: [e["name"] for e in found[key]] for key in ("mutants", "honest", "filters")}
    assert names == {
        "mutants": ["half", "same"],
        "honest": ["reference", "backwards", "in pieces"],
        "filters": ["work", "b"],
    }
    assert found["unlisted"] == {"forward": {"failed": {"n8": 1, "n9": 1}, "passed": 1, "right": 1}}
    text = one_entry_a_line(found)
    assert json.loads(text) == found
    assert len(text.splitlines()) == 4 + 2 * len(names) + sum(map(len, names.values()))


SOFTMAX = """
import torch

def make_inputs(n):
    return {"x": torch.rand(n, 4)}

def forward_fn(x):
    powers = (x[1:] - x[1:].amax(1, keepdim=True)).exp()
    return torch.cat([x[:1] * 2, powers / powers.sum(1, keepdim=True)])
"""


@pytest.mark.parametrize("large", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_what_drawn_values_never_need_is_found_by_other_values(folder: Path, large: bool) -> None:
    rows = [("n8", 8, ""), ("n9", 9, "")]
    if large:  # a hidden workload without a second row, on which everything is right
        rows.append(("n1", 1, 'hidden = true\nvalues = "large"\n'))
    text = TASK.partition("[[workloads]]")[0]
    for name, n, more in rows:
        text += f'[[workloads]]\nname = "{name}"\n{more}parameters = {{ n = {n} }}\n'
    (folder / "task.toml").write_text(text)
    (folder / "reference.py").write_text(SOFTMAX)
    report = survey(
        load_task(folder), SupervisorConfig(kind=DeviceKind.CPU), most_seeds=40 if large else 12
    )
    entry = next(m for m in report["mutants"] if m["name"] == "sub 1: removed")
    other = entry["workload"].endswith(", other values")
    assert (entry["state"], other) == (("failed", True) if large else ("survived", False))


@pytest.mark.parametrize("name", ["f'{next(n)} {j}'", "'x' * 1000"])
def test_a_task_that_makes_up_names_gets_no_report(folder: Path, name: str) -> None:
    kernels = f"[[{name}, 'failed', 2.0] for j in range(3000)]"
    with pytest.raises(OracleError, match="more than 4096 names, or a name longer than 512"):
        survey_answered(folder, f"{{{RIGHT}, 'mutants': {kernels}, 'output_bytes': 4}}")
    if name == "'x' * 1000":
        with pytest.raises(OracleError, match="nonsensical"):
            survey_answered(folder, "{'honest': {}, 'mutants': [], 'output_bytes': 4}")


@pytest.mark.parametrize(
    "answer",
    [
        {"honest": {"reference": 0.5}, "mutants": [], "output_bytes": 4},
        {"honest": [], "mutants": [], "output_bytes": 4},
        {"honest": {}, "mutants": [], "output_bytes": 4},
        {"honest": {"reference": (math.nan, "")}, "mutants": [], "output_bytes": 4},
        {"honest": {"reference": ("x", "")}, "mutants": [], "output_bytes": 4},
        {"honest": {"reference": (0.5, 7)}, "mutants": [], "output_bytes": 4},
        {"honest": {"reference": (0.5, "")}, "mutants": [["a", "fine", 1]], "output_bytes": 4},
        {"honest": {"reference": (0.5, "")}, "mutants": [], "output_bytes": "many"},
        {"honest": {"reference": (0.5, "")}},
    ],
)
def test_an_answer_without_sense_is_the_tasks_fault(answer: dict[str, Any]) -> None:
    sent = json.loads(json.dumps(answer))  # as it comes from an oracle
    with pytest.raises(OracleError, match="nonsensical"), sense():
        Tried.read(sent)


RIGHT = "'honest': {'reference': (0.5, '')}"


def survey_answered(folder: Path, answer: str) -> None:
    """Survey a task whose code answers instead of being tried."""
    flood = f"""
import importlib, itertools
n = itertools.count()
engine = importlib.import_module("gpu_runner.engine.soundness.soundness")
engine.Soundness.step = lambda *_, **__: {answer}
"""
    (folder / "reference.py").write_text(flood + REFERENCE)
    survey(load_task(folder), SupervisorConfig(kind=DeviceKind.CPU))

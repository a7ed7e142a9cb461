"""The oracle as a process: it draws the same inputs twice, judges, and outlives bad tasks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gpu_runner.data.task import Tolerance
from gpu_runner.engine.oracle import oracle as engine_oracle
from gpu_runner.engine.problem.compare import Limit
from tests.unit.gpu_runner.engine.conftest import Start
from tests.unit.gpu_runner.engine.stub import Evaluation, make_task, rows_task, scaled_task


def expected_rows(evaluation: Evaluation, offsets: list[int]) -> list[torch.Tensor]:
    """Outputs of the rows task in float32 from what lies in the inputs arena."""
    source, gain = (
        evaluation.inputs.tensor(offset, entry)
        for entry, offset in zip(evaluation.read, offsets, strict=True)
    )
    return [source * gain + 0.25, source.sum(1)]


def give(evaluation: Evaluation, outputs: list[torch.Tensor]) -> None:
    described = evaluation.described["outputs"]
    for tensor, entry, offset in zip(outputs, described, evaluation.places, strict=True):
        evaluation.outputs.tensor(offset, entry).copy_(tensor)


def test_calls_of_each_abi_and_direction_are_described(start: Start) -> None:
    evaluation = start(rows_task())
    assert evaluation.loaded["torch"] == torch.__version__
    assert evaluation.loaded["device_name"]
    answer = evaluation.describe()
    source, gain, shift = answer["arguments"]
    assert (source["name"], source["kind"], source["dtype"]) == ("input", "tensor", "float32")
    assert (source["shape"], source["strides"], source["nbytes"]) == ([7, 33], [33, 1], 924)
    assert gain["shape"] == [33]
    assert (shift["kind"], shift["value"]) == ("value", 0.25)
    outputs = [(o["name"], o["shape"]) for o in answer["outputs"]]
    assert outputs == [("output[0]", [7, 33]), ("output[1]", [7])]
    gradients, *others = evaluation.describe(direction="backward")["arguments"]
    assert (gradients["kind"], gradients["name"]) == ("list", "grad_output")
    assert [item["shape"] for item in gradients["items"]] == [[7, 33], [7]]
    assert [entry["name"] for entry in others] == ["input", "gain"]
    arguments = start(scaled_task()).describe()["arguments"]
    names = (
        "out output float32|a tensor float32|index tensor int32|N value int32|factor value float32"
    )
    assert [f"{a['name']} {a['kind']} {a['dtype']}" for a in arguments] == names.split("|")
    assert [a["value"] for a in arguments[3:]] == [100, 3.0]
    assert arguments[0]["nbytes"] == 400


def test_right_outputs_pass_and_a_wrong_one_is_named(start: Start, device: str) -> None:
    evaluation = start(rows_task(tolerance=Tolerance(reduction="C")), device)
    evaluation.describe()
    outputs = expected_rows(evaluation, evaluation.fill(41))
    give(evaluation, outputs)
    answer = evaluation.take_and_verify(41)
    assert [output["mismatch"] for output in answer["outputs"]] == [None, None]
    assert all(0 < output["scaled"] <= 1 for output in answer["outputs"])
    outputs[1][4] += 1
    give(evaluation, outputs)
    first, second = evaluation.take_and_verify(41)["outputs"]
    assert first["mismatch"] is None
    assert second["mismatch"]["index"] == [4]
    assert second["mismatch"]["wrong_elements"] == 1
    assert evaluation.take_and_verify(42)["outputs"][0]["mismatch"] is not None


def test_the_first_wrong_output_is_explained_where_that_is_asked(start: Start, device: str) -> None:
    evaluation = start(rows_task(tolerance=Tolerance(reduction="C")), device)
    evaluation.describe()
    give(evaluation, [-output for output in expected_rows(evaluation, evaluation.fill(41))])
    first, second = evaluation.take_and_verify(41, explain=True)["outputs"]
    assert [found["symptom"] for found in first["findings"]] == ["sign"]
    assert second["mismatch"] is not None
    assert second["findings"] == []
    unasked = evaluation.take_and_verify(41)["outputs"]
    assert [output["findings"] for output in unasked] == [[], []]


def test_a_verdict_stands_where_it_cannot_be_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(case: object) -> None:
        raise torch.OutOfMemoryError("no memory for it")

    monkeypatch.setattr(engine_oracle, "diagnose", fails)
    zeros, ones = torch.zeros(9), torch.ones(9, dtype=torch.float64)
    assert engine_oracle.explain(zeros, ones, Limit(1.0), None, 1e9, 1.0) == ()


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_fill_draws_the_same_bits_again_and_others_for_another_seed(
    start: Start, device: str, direction: str
) -> None:
    evaluation = start(rows_task(), device)
    evaluation.describe(direction=direction)
    evaluation.fill(7)
    first = bytes(evaluation.inputs.map)
    evaluation.fill(8)
    assert bytes(evaluation.inputs.map) != first
    evaluation.fill(7)
    assert bytes(evaluation.inputs.map) == first
    other = start(rows_task(), device)
    other.describe(direction=direction)
    other.fill(7)
    assert bytes(other.inputs.map) == first


def test_a_call_may_have_values_of_another_family(start: Start) -> None:
    evaluation = start(rows_task())
    evaluation.describe()
    offsets = evaluation.fill(7)
    drawn = bytes(evaluation.inputs.map)
    assert evaluation.ask("fill", seed=7, offsets=offsets, values="large") == {"ok": True}
    assert bytes(evaluation.inputs.map) != drawn
    assert evaluation.ask("fill", seed=7, offsets=offsets, values="drawn") == {"ok": True}
    assert bytes(evaluation.inputs.map) == drawn
    assert not evaluation.ask("fill", seed=7, offsets=offsets, values="odd")["ok"]


def test_the_references_own_error_says_whether_it_bears_such_values(start: Start) -> None:
    evaluation = start(rows_task())
    evaluation.describe()
    assert evaluation.ask("own_error", seed=7, values="large")["scaled"] < 1
    refuses = """
import torch
def make_inputs(N):
    return {"a": torch.randn(N)}
def forward_fn(a):
    assert a.abs().amax() < 100, "too large"
    return a * a
"""
    evaluation = start(make_task(refuses, {"N": 7}))
    evaluation.describe()
    assert evaluation.ask("own_error", seed=7)["scaled"] < 1e300
    assert evaluation.ask("own_error", seed=7, values="large")["scaled"] >= 1e300


@pytest.mark.parametrize(
    ("inputs", "name"),
    [
        ("torch.randn(N), torch.rand(1).item()", "by"),
        ("torch.randn(torch.seed() % 7 + 1), 2.0", "a"),
    ],
)
def test_only_the_contents_of_tensors_may_be_the_seeds(
    start: Start, inputs: str, name: str
) -> None:
    """A plain value and a size are described once, so a kernel would be given the wrong one."""
    reference = f"""
import torch
def make_inputs(N):
    a, by = {inputs}
    return {{"a": a, "by": by}}
def forward_fn(a, by):
    return a * by
"""
    evaluation = start(make_task(reference, {"N": 10}))
    evaluation.describe()
    answers = [evaluation.ask("fill", seed=seed, offsets=[256]) for seed in range(8)]
    wrong = [answer["error"] for answer in answers if not answer["ok"]]
    assert wrong
    assert wrong[0].startswith(f"make_inputs gave {name} as ")


def test_inputs_that_change_between_draws_are_refused(start: Start) -> None:
    reference = """
import torch
count = 0
def make_inputs(N):
    global count
    count += 1
    return {"a": torch.randn(N) + (count > 2)}
def forward_fn(a):
    return a
"""
    evaluation = start(make_task(reference, {"N": 10}))
    evaluation.describe()
    evaluation.fill(1)
    answer = evaluation.take_and_verify(1)
    assert answer == {
        "ok": False,
        "error": "make_inputs gave different inputs when it was called again with the same seed",
    }


def test_the_reference_sees_inputs_rounded_to_the_tasks_dtype(start: Start) -> None:
    reference = """
import torch
def make_inputs(N):
    return {"a": torch.randn(N, dtype=torch.float64) * 100}
def forward_fn(a):
    return a - a.round()
"""
    evaluation = start(make_task(reference, {"N": 50}, dtype="bfloat16"))
    answer = evaluation.describe()
    assert answer["arguments"][0]["dtype"] == "bfloat16"
    assert answer["outputs"][0]["dtype"] == "bfloat16"
    (offset,) = evaluation.fill(3)
    seen = evaluation.inputs.tensor(offset, evaluation.read[0]).double()
    give(evaluation, [(seen - seen.round()).bfloat16()])
    output = evaluation.take_and_verify(3)["outputs"][0]
    assert output["mismatch"] is None
    assert output["scaled"] < 0.1


def test_a_scale_of_the_task_is_used(start: Start) -> None:
    reference = """
import torch
def make_inputs(N):
    return {"a": torch.randn(N)}
def forward_fn(a):
    return a.sum()
def forward_scale(a):
    return a.abs().sum()
"""
    evaluation = start(make_task(reference, {"N": 1000}))
    evaluation.describe()
    (offset,) = evaluation.fill(3)
    seen = evaluation.inputs.tensor(offset, evaluation.read[0]).double()
    bound = torch.finfo(torch.float32).eps * 20 * seen.abs().sum()
    for steps, passes in ((0.9, True), (1.1, False)):
        give(evaluation, [(seen.sum() + steps * bound).float()])
        output = evaluation.take_and_verify(3)["outputs"][0]
        assert (output["mismatch"] is None) is passes
        assert output["scaled"] == pytest.approx(steps, abs=0.05)


GIVES = "import torch\ndef make_inputs(N): return {}\ndef forward_fn({}): return {}"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("def make_inputs(:", "reference.py: SyntaxError"),
        ("def make_inputs(N): return {}", "has no function forward_fn"),
        (GIVES.format("exit(0)", "a", "a"), "SystemExit: 0"),
        (GIVES.format("3", "a", "a"), "make_inputs must return a dict"),
        (GIVES.format("{'a': torch.ones(N)}", "a", "3.0"), "returned float, not a tensor"),
        (GIVES.format("{'a': torch.ones(N) * 1j}", "a", "a"), "not torch.complex64"),
        (
            GIVES.format("{'a': torch.ones(N), 'b': object()}", "a, b", "a"),
            "argument 'b' is object",
        ),
    ],
)
def test_a_bad_task_is_an_answer(start: Start, reference: str, message: str) -> None:
    evaluation = start(make_task(reference, {"N": 4}))
    answer: dict[str, Any] = evaluation.loaded
    if answer["ok"]:
        answer = evaluation.describe_raw()
    assert answer["ok"] is False
    assert message in answer["error"]
    assert evaluation.oracle.load(rows_task())["ok"]


def test_bad_requests_are_answers(start: Start) -> None:
    evaluation = start(rows_task())
    for fields, message in (
        ({"op": "explode"}, "unknown operation"),
        ({"op": "describe", "workload": "none", "direction": "forward", "seed": 1}, "no workload"),
        ({"op": "describe", "workload": "only", "direction": "up", "seed": 1}, "up"),
        ({"op": "describe", "workload": "only", "direction": "forward"}, "seed"),
    ):
        answer = evaluation.oracle.ask(**fields)  # type: ignore[arg-type]
        assert answer["ok"] is False
        assert message in answer["error"]
    evaluation.describe()
    assert not evaluation.ask("fill", seed=1, offsets=[0, 1 << 20])["ok"]  # beyond the arena
    assert not evaluation.ask("fill", seed=1, offsets=[0])["ok"]
    task = rows_task()
    files = {**task.files, "../escaped.py": "x = 1"}
    outside = evaluation.oracle.load(type(task)(**{**vars(task), "files": files}))
    assert "lies outside" in outside["error"]

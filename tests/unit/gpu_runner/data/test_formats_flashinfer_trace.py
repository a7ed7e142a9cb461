"""Definitions of FlashInfer Trace become tasks; what isn't taken says why, and costs no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError, DataErrors
from gpu_runner.data.formats import read_task
from gpu_runner.data.formats.building import build_task
from gpu_runner.data.formats.trace_definition import public_files
from gpu_runner.data.task import Task, Values
from gpu_runner.data.verdict import DeviceKind
from tests import trace_files as make


def _read(folder: Path, document: dict[str, Any], *workloads: dict[str, Any]) -> Task:
    return read_task(make.write_data_set(folder, document, list(workloads))).task


def test_a_definition_is_a_task_with_its_workloads(tmp_path: Path) -> None:
    large = make.workload("u2", n=1 << 20)
    again = make.workload("u3")
    task = _read(tmp_path, make.definition(), make.workload("u1"), large, again)
    assert (task.name, task.dtype) == ("take_rows_w4", "bfloat16")
    public = [each for each in task.workloads if not each.hidden]
    assert [each.name for each in public] == ["n=8, k=3", "n=1048576, k=3", "n=8, k=3 u3"]
    assert [DeviceKind.CPU in each.devices for each in public] == [True, False, True]
    assert public[0].parameters["inputs"]["alpha"] == {"type": "scalar", "value": 0.5}
    assert {each.values for each in task.workloads if each.hidden} == {Values.SMALL}
    assert "[k, w], bfloat16" in task.description
    assert json.loads(task.files["tensors.json"])["u1"] == {"rows": [2, 0, 2]}
    assert build_task(codec.encode(task)).digest() == task.digest()


def test_a_workload_that_cannot_be_taken_costs_no_other(tmp_path: Path) -> None:
    gone: dict[str, object] = {
        "type": "safetensors",
        "path": "./blob/none.safetensors",
        "tensor_key": "rows",
    }
    outside = {**gone, "path": "../../secret"}
    other_size = make.workload("u4")
    other_size["axes"]["k"] = 2
    file = make.write_data_set(
        tmp_path,
        make.definition(),
        [
            make.workload("u1"),
            make.workload("u2", rows=gone),
            make.workload("u3", rows=gone),
            other_size,
            make.workload("u5", alpha=make.RANDOM),
            make.workload("u6", rows=outside),
        ],
    )
    reading = read_task(file)
    assert sum(not each.hidden for each in reading.task.workloads) == 1
    said = "\n".join(reading.adaptations)
    for words in (
        "skips 2 of 6 workloads: inputs.rows is in a missing file",
        "inputs.rows is int32 with shape [3], but the definition has int32, [2]",
        "inputs.alpha is a random number",
        "outside the data set",
    ):
        assert words in said


def test_sol_execbench_is_read_from_a_folder(tmp_path: Path) -> None:
    document = make.definition(
        op_type=None,
        constraints=None,
        axes={"n": {"type": "var"}, "h": {"type": "expr", "expression": "n // 2"}},
        inputs={"x": make.tensor("float32", "n")},
        outputs={"out": make.tensor("float32", "h")},
        custom_inputs_entrypoint="draw",
        reference="def draw(axes, device):\n    return {}\n\n\ndef run(x):\n    return x[::2]\n",
    )
    entry = {"uuid": "u1", "axes": {"n": 6}, "inputs": {"x": {"type": "custom"}}}
    (tmp_path / "definition.json").write_text(json.dumps(document))
    (tmp_path / "workload.jsonl").write_text(json.dumps({**entry, "tolerance": {}}))
    reading = read_task(tmp_path)
    assert reading.task.workloads[0].parameters["inputs"] == {"x": {"type": "custom"}}
    assert "tolerances" in reading.adaptations[0]


def test_the_public_gets_tensors_of_public_workloads(tmp_path: Path) -> None:
    task = _read(tmp_path, make.definition(), make.workload("u1"), make.workload("u2", n=9))
    document = codec.encode(task)
    del document["workloads"][1]
    shown = public_files(document)
    assert json.loads(shown["definition.json"])["name"] == "Take-rows_w4"
    assert json.loads(shown["tensors.json"]) == {"u1": {"rows": [2, 0, 2]}}
    assert public_files({**document, "format": "kbench"}) == {}


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        (
            {"reference": "def run(x): return x"},
            "reference.py",
            "1 parameters, but there are 3 inputs",
        ),
        ({"reference": "import vllm\n" + make.REFERENCE}, "reference.py", "vllm"),
        (
            {"reference": make.REFERENCE + "    return torch.multinomial(x, 1)\n"},
            "reference.py",
            "random",
        ),
        ({"outputs": {"out": make.tensor("float4_e2m1", "k")}}, "outputs.out.dtype", "float4"),
        ({"outputs": {"out": make.tensor("int32", "q")}}, "outputs.out.shape", "'q'"),
        ({"outputs": {"x": make.tensor("int32", "k")}}, "outputs.x", "input"),
        ({"custom_inputs_entrypoint": "draw"}, "custom_inputs_entrypoint", "draw"),
        ({"reference": None}, "reference", "run()"),
    ],
)
def test_a_refusal_names_the_field(
    tmp_path: Path, change: dict[str, Any], field: str, reason: str
) -> None:
    make.write_data_set(tmp_path, make.definition(**change), [make.workload("u1")])
    with pytest.raises(DataError) as caught:
        read_task(tmp_path / "definitions/gather/Take-rows_w4.json", "flashinfer-trace")
    error = caught.value
    errors = error.errors if isinstance(error, DataErrors) else (error,)
    assert any(each.field == field and reason in str(each) for each in errors), str(error)


def test_a_stored_task_must_fit_to_its_definition(tmp_path: Path) -> None:
    task = _read(tmp_path, make.definition(), make.workload("u1"))
    document = codec.encode(task)
    document["workloads"][0]["parameters"] |= {"z": 1}
    del document["files"]["tensors.json"]
    with pytest.raises(DataErrors) as caught:
        build_task(document)
    fields = {each.field for each in caught.value.errors}
    place = "workloads[0].parameters"
    assert {f"{place}.z", f"{place}.inputs.rows"} <= fields

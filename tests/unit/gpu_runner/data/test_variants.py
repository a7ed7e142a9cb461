"""Variants of a task in one folder, workloads in short, and how tasks are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats import catalog_specifications, find_task, load_task
from gpu_runner.data.formats.sweeps import expand, origins
from tests.unit.gpu_runner.data.test_formats_kbench import refused, write

VARIANT = """title = "Row sums in BF16"
dtype = "bfloat16"
tolerance = { constant = 2.0, growth = 0.0 }
"""


def test_a_variant_replaces_keys_of_the_task_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBENCH_CATALOG", str(tmp_path))
    folder = write(tmp_path / "row_sum")
    (folder / "task_bf16.toml").write_text(VARIANT)
    plain, variant = find_task("row_sum"), find_task("row_sum_bf16")
    assert load_task(folder) == load_task(folder / "task.toml") == plain
    assert (variant.name, variant.title, variant.dtype) == (
        "row_sum_bf16",
        "Row sums in BF16",
        "bfloat16",
    )
    assert variant.tolerance.constant == 2.0
    assert variant.workloads == plain.workloads
    assert plain.files == variant.files
    assert list(catalog_specifications()) == ["row_sum", "row_sum_bf16"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('title = "t"\nname = "other"', "name"),
        ('dtype = "bfloat16"', "title"),
        ('title = "t"\ndtype = "int7"', "dtype"),
        ("title =", "task_bf16.toml"),
        ('title = "t"\n[[sweeps]]\nparameters = 3', "sweeps[0].parameters"),
    ],
)
def test_a_wrong_variant_is_refused(tmp_path: Path, text: str, field: str) -> None:
    folder = write(tmp_path / "row_sum")
    (folder / "task_bf16.toml").write_text(text)
    assert refused(folder / "task_bf16.toml").field == field
    assert load_task(folder).name == "row_sum"


def test_a_task_holds_the_kernels_that_it_lists(tmp_path: Path) -> None:
    folder = write(tmp_path / "row_sum")
    (folder / "kernels").mkdir(exist_ok=True)
    (folder / "kernels" / "other.cpp").write_text("// another variant's")
    assert "kernels/other.cpp" not in load_task(folder).files


def test_a_sweep_is_every_combination() -> None:
    sweep = {"prefix": "cpu_", "devices": ["cpu"], "parameters": {"N": [1, 2], "skew": 0.5}}
    document = expand({"sweeps": [sweep], "workloads": [{"name": "own", "parameters": {}}]})
    assert [w["name"] for w in document["workloads"]] == ["cpu_n1_skew0.5", "cpu_n2_skew0.5", "own"]
    assert document["workloads"][1] == {
        "name": "cpu_n2_skew0.5",
        "parameters": {"N": 2, "skew": 0.5},
        "devices": ["cpu"],
    }


@pytest.mark.parametrize(
    "sweep",
    [
        7,
        {},
        {"parameters": {"N": list(range(300))}},
        {"parameters": {"N": []}},
        {"name": "n", "parameters": {}},
        {"prefix": 3, "parameters": {}},
    ],
)
def test_a_wrong_sweep_is_refused(sweep: object) -> None:
    with pytest.raises(DataError, match=r"^sweeps\[0\]\."):
        expand({"sweeps": [sweep]})


def test_unlisted_workloads_come_last() -> None:
    own, other = {"name": "n4", "parameters": {"N": 4}}, {"name": "n5", "parameters": {"N": 5}}
    document = expand({"workloads": [own], "unlisted": [other]})
    assert document == {"workloads": [own, {**other, "hidden": True, "unlisted": True}]}
    assert origins({"workloads": [own], "unlisted": [other]}) == ["workloads[0]", "unlisted[0]"]


@pytest.mark.parametrize("unlisted", [True, {}, [3]])
def test_wrong_unlisted_workloads_are_refused(unlisted: object) -> None:
    with pytest.raises(DataError, match="must be a list of workloads"):
        expand({"unlisted": unlisted})


def test_a_name_cannot_lead_out_of_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBENCH_CATALOG", str(tmp_path / "catalog"))
    for name in ("..", ".", ""):
        with pytest.raises(DataError):
            find_task(name)

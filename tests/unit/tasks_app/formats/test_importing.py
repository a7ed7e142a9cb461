"""An import says of every file what became of it, and executes none; tasks as texts and back."""

from __future__ import annotations

import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gpu_runner.data.formats import built_in_tasks, catalog_folder, read_folder
from gpu_runner.data.formats.load import CATALOG_VARIABLE
from gpu_runner.data.task import Task as TaskData
from runs_app.features.curation.decisions.services import label
from runs_app.features.curation.drafts.services import create_draft, publish_draft, send_to_review
from runs_app.features.curation.drafts.uploads import Upload, read_upload
from tasks_app.formats.task_writing import catalogue_folder
from tasks_app.models import Task, TaskVersion
from tasks_app.publishing.snapshots import take_varied
from tests import factories as make

pytestmark = pytest.mark.django_db

STRANGER = "raise RuntimeError('this file must never be imported')\n"
MISSING = [
    "run.py: must define the function get_inputs()",
    "run.py: must define the function get_init_inputs()",
    "run.py: must define the class Model with a method forward()",
]
"""What is wrong with it."""
KERNELBENCH = (
    STRANGER
    + """
import torch

batch_size = 64

class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()

    def forward(self, x):
        return x

def get_inputs():
    return [torch.rand(batch_size, 8)]

def get_init_inputs():
    return [2.0]
"""
)
ROBUST = (
    STRANGER
    + """
def forward_fn(x):
    return x

class Model:
    def forward(self, x, fn=forward_fn):
        return fn(x)

def get_inputs(rows=4):
    return [rows]
"""
)
CONFIG = {"single_input_configs": [{"rows": 4}], "single_init_configs": [{"width": 8}]}


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_robust(root: Path, name: str, config: dict[str, Any]) -> None:
    write(root, f"{name}/func_forward.py", ROBUST)
    write(root, f"{name}/config_forward.json", json.dumps(config))
    write(root, f"{name}/1_Original.py", STRANGER)


def load(*arguments: object) -> tuple[list[str], str]:
    """Lines on standard output, and the command's error."""
    out = io.StringIO()
    try:
        call_command("load_tasks", *map(str, arguments), stdout=out)
    except CommandError as error:
        return out.getvalue().splitlines(), str(error)
    return out.getvalue().splitlines(), ""


def test_every_file_of_nested_folders_is_told_of(tmp_path: Path) -> None:
    root = tmp_path / "benchmark"
    write(root, "level1/10_Later.py", KERNELBENCH)
    write(root, "level1/2_First.py", KERNELBENCH)
    write(root, "level4/1_Huge.py", "import transformers\n" + KERNELBENCH)
    write(root, "tools/run.py", STRANGER)
    write(root, "tasks.toml", "words")
    write(root, "_old/3_Past.py", KERNELBENCH)
    write_robust(root, "zoo/task_7", {"single_input_configs": [{"rows": 4}]})
    write_robust(root, "zoo/task_7/more/task_8", {"single_input_configs": [{"rows": 4}]})
    write(root, "zoo/task_7/forward_v2.cu", "words")
    write(root, "zoo/task_7/eval_results/forward/torch_results.json", '{"device_info": {}}')
    report = tmp_path / "report.json"
    lines, error = load(root, "--report", report)
    assert [" ".join(line.split())[:45].split(" v1")[0] for line in lines[:6]] == [
        "loaded level1-2_first", "loaded level1-10_later",
        "refused level4/1_Huge.py - 1_Huge.py: imports",
        "refused tools/run.py - " + MISSING[0][:22], "loaded task_7", "loaded task_8",
    ]  # fmt: skip
    assert all(words in lines[3] for words in MISSING)
    assert error == "2 refused for the reasons above"
    document = json.loads(report.read_text())
    assert document["counts"] == {"loaded": 4, "adapted": 0, "refused": 2}
    assert {"tasks.toml", "_old", "zoo/task_7/forward_v2.cu"} <= set(document["ignored"])
    first = document["rows"][0]
    assert (first["task"], first["version"], first["state"]) == ("level1-2_first", 1, "in review")
    assert [w["parameters"] for w in first["workloads"]] == [{}]
    stored = TaskVersion.objects.get(task__slug="level1-2_first").data
    assert [w.name for w in stored.workloads] == ["default"]
    for option in (("--brief",), ("--verbosity", "0")):  # where no rows are printed
        assert load(root / "level4", *option)[1] == (
            f"{root}/level4/1_Huge.py: 1_Huge.py: imports transformers, which runners don't have"
            " (line 1)"
        )
    (tmp_path / "empty").mkdir()
    assert "has no task.toml, func_forward.py" in load(tmp_path / "empty")[0][0]


def test_tasks_from_elsewhere_are_tagged_until_an_admin_labels_them(tmp_path: Path) -> None:
    write(tmp_path, "1_First.py", KERNELBENCH)
    write_robust(tmp_path, "task_7", {"single_input_configs": [{"rows": 4}]})
    own = make.make_task_version().task
    load(tmp_path)
    tags = dict(Task.objects.values_list("slug", "tags"))
    assert tags == {
        own.slug: [],
        "1_first": ["imported", "kernelbench"],
        "task_7": ["imported", "robust-kbench"],
    }
    task = Task.objects.get(slug="task_7")
    label(task=task, user=make.make_admin(), tags=[], difficulty="", now=make.NOW)
    load(tmp_path)
    assert Task.objects.get(slug="task_7").tags == []
    upload = Upload(name="19_ReLU.py", content=KERNELBENCH.encode())
    (files,) = read_upload([upload]).folders
    admin = make.make_admin()
    draft = create_draft(user=admin, files=files, now=make.NOW)
    draft = send_to_review(draft=draft, user=admin, now=make.NOW)
    assert draft.task is not None
    assert draft.task.tags == []
    version = publish_draft(draft=draft, user=admin, override="seen", now=make.NOW)
    assert Task.objects.get(pk=version.task_id).tags == ["imported", "kernelbench"]


def test_a_file_is_not_loaded_again_over_the_workloads_found_for_it(tmp_path: Path) -> None:
    write(tmp_path, "2_First.py", KERNELBENCH)
    load(tmp_path)
    own = TaskVersion.objects.get()
    half = replace(own.data.workloads[0], name="half", parameters={"batch_size": 32})
    data = replace(own.data, workloads=(*own.data.workloads, half))
    varied = take_varied(version=own, data=data, user=make.make_admin(), now=make.NOW)
    lines, _ = load(tmp_path)
    assert lines[0].startswith("loaded  2_first v2  in review")
    assert Task.objects.get().current_version == varied
    write(tmp_path, "2_First.py", KERNELBENCH + "# changed\n")
    assert load(tmp_path)[0][0].startswith("loaded  2_first v3  in review")


def test_a_left_out_key_and_a_taken_name_are_adaptations(tmp_path: Path) -> None:
    built_in = sorted(path.parent.name for path in catalog_folder().glob("*/task.toml"))[0]
    write_robust(tmp_path, built_in, {"single_input_configs": [{"rows": 4}]})
    write_robust(tmp_path, "level_1/task_1", CONFIG)
    write_robust(tmp_path, "other/level_1/task_1", CONFIG)
    write_robust(tmp_path, "unread", {})
    (tmp_path / "unread" / "config_forward.json").unlink()
    lines, _ = load(tmp_path)
    for line, words in zip(
        lines,
        (
            (f"robust-kbench-{built_in} v1", f"a built-in task is already named {built_in}"),
            ("level_1-task_1 v1", "ignores init's width"),
            ("other-level_1-task_1 v1", "ignores init's width", "folders also have a task_1"),
            ("unread", "is missing from the task's folder"),
        ),
        strict=False,
    ):
        assert all(each in line for each in words), line
    known = {f"robust-kbench-{built_in}", "level_1-task_1", "other-level_1-task_1"}
    assert set(Task.objects.values_list("slug", flat=True)) == known


def test_files_of_one_name_are_named_by_their_folders(tmp_path: Path) -> None:
    write(tmp_path, "mine/add/problem.py", KERNELBENCH)
    write(tmp_path, "mine/scale/problem.py", KERNELBENCH.replace("return x", "return x * 3"))
    load(tmp_path / "mine")
    assert set(Task.objects.values_list("slug", flat=True)) == {"add-problem", "scale-problem"}
    write(tmp_path, "mine/add/problem.py", KERNELBENCH + "# changed\n")
    assert load(tmp_path / "mine")[0][0].split()[:3] == ["adapted", "add-problem", "v2"]


def test_a_stranger_with_the_same_name_is_no_new_version(tmp_path: Path) -> None:
    for folder in ("mine", "theirs"):
        write(tmp_path, f"{folder}/problem.py", f"{KERNELBENCH}# {folder}\n")
    load(tmp_path / "mine/problem.py")
    lines, _ = load(tmp_path / "theirs/problem.py")
    assert f"problem is already the name of {tmp_path}/mine/problem.py" in lines[0]
    assert TaskVersion.objects.count() == 1
    write(tmp_path, "elsewhere/problem.py", f"{KERNELBENCH}# mine\n")  # the same text
    assert load(tmp_path / "elsewhere/problem.py")[1] == ""
    load(tmp_path / "theirs/problem.py", "--moved")
    assert Task.objects.get().current_version == TaskVersion.objects.get(number=2)
    make.make_task_version(name="own")
    write(tmp_path, "own.py", KERNELBENCH)
    assert "a task written on this site" in load(tmp_path / "own.py")[0][0]


def test_origin_kernels_are_matched_and_change_no_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = tmp_path / "catalog"  # of one task: reading all takes seconds
    shutil.copytree(catalog_folder() / "vector_add", catalog / "vector_add")
    monkeypatch.setenv(CATALOG_VARIABLE, str(catalog))
    text = 'extern "C" void vector_add(const float* A, const float* B, float* C, int N) {}'
    write(tmp_path, "origin/fp32/vector_add.cu", text)
    write(tmp_path, "origin/fp32/vector_sub.cu", text.replace("_add", "_sub"))
    write(tmp_path, "origin/README.md", "words")
    report = tmp_path / "report.json"
    for task_format in ("auto", "mskernelbench"):
        lines, error = load(tmp_path / "origin", "--format", task_format, "--report", report)
        assert [line.split()[:2] for line in lines[:2]] == [
            ["adapted", "fp32/vector_add.cu"], ["refused", "fp32/vector_sub.cu"],
        ]  # fmt: skip
        assert "no built-in task in float32" in lines[1]
        assert f"submit_shipped_kernels --origin {tmp_path / 'origin'}`" in lines[3]
        assert lines[4] == "2 read: 0 loaded, 1 adapted, 1 refused"
        assert error == "1 refused for the reason above"
    row = json.loads(report.read_text())["rows"][0]
    assert (row["task"], row["agent"]) == ("vector_add", "mskernelbench-origin")
    assert not Task.objects.exists()


def test_an_unwritable_report_is_a_fault_before_anything_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "2_First.py", KERNELBENCH)
    write(tmp_path, "old.json", "{}")
    (tmp_path / "out").mkdir()
    for name, locked, words in (
        ("out", None, "{}/out is a folder"),
        ("old.json", "old.json", "{}/old.json cannot be written to"),
    ):
        if locked is not None:  # by the system's answer, because root may write to every file
            closed = tmp_path / locked
            monkeypatch.setattr(os, "access", lambda path, _, it=closed: Path(path) != it)
        lines, error = load(tmp_path / "2_First.py", "--report", tmp_path / name)
        assert error.startswith(f"--report: {words.format(tmp_path)}")
        assert not lines
    assert not Task.objects.exists()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("task", built_in_tasks(), ids=lambda task: task.name)
def test_a_built_in_task_is_written_as_it_is_in_the_catalogue(task: TaskData) -> None:
    files = catalogue_folder(task)
    assert (files is None) is task.name.endswith("_bf16")
    if files is not None:
        assert read_folder(files)[0] == task
    assert catalogue_folder(replace(task, title="of a lab")) is None

"""Tasks as texts and back, beside what `test_folder` tries."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.formats import built_in_tasks, read_folder
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Direction
from tasks_app.formats.task_writing import catalogue_folder
from tests.unit.gpu_runner.data.test_folder import SPECIFICATION, SWEEP, assert_round_trip, texts


def test_a_task_from_json_survives() -> None:
    task, _ = read_folder(texts(SPECIFICATION + SWEEP))
    assert task is not None
    stored = decode(Task, json.loads(json.dumps(encode(task))))
    assert stored.directions == (Direction.FORWARD,)
    assert_round_trip(stored)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("task", built_in_tasks(), ids=lambda task: task.name)
def test_a_built_in_task_is_written_as_it_is_in_the_catalogue(task: Task) -> None:
    files = catalogue_folder(task)
    assert (files is None) is task.name.endswith("_bf16")
    if files is not None:
        assert read_folder(files)[0] == task
    assert catalogue_folder(replace(task, title="of a lab")) is None

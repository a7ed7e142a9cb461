"""Tasks as texts and back, beside what `test_folder` tries."""

from __future__ import annotations

import json

from gpu_runner.data.codec import decode, encode
from gpu_runner.data.formats import read_folder
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import Direction
from tests.unit.gpu_runner.data.test_folder import SPECIFICATION, SWEEP, assert_round_trip, texts


def test_a_task_from_json_survives() -> None:
    task, _ = read_folder(texts(SPECIFICATION + SWEEP))
    assert task is not None
    stored = decode(Task, json.loads(json.dumps(encode(task))))
    assert stored.directions == (Direction.FORWARD,)
    assert_round_trip(stored)

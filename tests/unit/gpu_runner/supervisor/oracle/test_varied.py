"""An imported file is run in a jail to vary its sizes, and nothing that it says is believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_runner import __main__ as command
from gpu_runner.data.formats import load_task
from gpu_runner.data.verdict import DeviceKind
from gpu_runner.supervisor.host.config import SupervisorConfig
from gpu_runner.supervisor.oracle import sizes
from gpu_runner.supervisor.oracle.client import OracleError
from gpu_runner.supervisor.oracle.sizes import Answer
from gpu_runner.supervisor.oracle.varied import Varied, vary

GIB = 2**30
FILE = """
import sys
import torch
import torch.nn as nn

rows, cols = 1024, 512
size = (rows, cols)
{first}

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, 8)

    def forward(self, x):
        return self.project(x)

def get_inputs():
    {then}
    return [torch.rand(size)]

def get_init_inputs():
    return [512]
"""
TELL = """
from types import SimpleNamespace
lies = SimpleNamespace(run=lambda *_, **__: {answer})
sys.modules["gpu_runner.engine.formats.sizes"] = lies
"""


def vary_file(folder: Path, first: str = "", then: str = "pass") -> Varied:
    path = folder / "1_problem.py"
    path.write_text(FILE.format(first=first, then=then))
    config = SupervisorConfig(
        kind=DeviceKind.CPU, device="cpu", cache_folder=folder, memory_bytes=2 * GIB
    )
    return vary(load_task(path), config)


def names(found: Varied) -> list[str]:
    return [workload.name for workload in found.task.workloads]


def test_the_command_writes_a_task_that_can_be_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "1_problem.py", tmp_path / "task.json"
    path.write_text(FILE.format(first="", then="pass"))
    assert command.main(["vary", "--task", str(path), "--json", str(out)]) == 0
    task = load_task(out)
    found = {w.name: w.parameters for w in task.workloads}
    assert (found["default"], found["odd"]) == ({}, {"rows": 919, "size": [919, 512]})
    assert found["small_odd"] == {"rows": 461, "size": [461, 512]}
    assert [w.devices for w in task.workloads[:3]] == [("cuda",), ("cuda",), ("cpu",)]
    assert "rows=461" in capsys.readouterr().out
    assert command.main(["vary", "--task", str(out)]) == 2


def test_it_writes_no_file_and_takes_no_memory(tmp_path: Path) -> None:
    written = tmp_path / "written"
    first = f"try:\n    open({str(written)!r}, 'w').write('x')\nexcept OSError:\n    pass"
    found = vary_file(tmp_path, first, "_ = bytearray(1 << 40) if rows != 1024 else 0")
    assert names(found) == ["default"]
    assert not written.exists()


@pytest.mark.parametrize(
    ("name", "limit", "then", "words"),
    [
        ("ANSWER_S", 2.0, "while rows != 1024: pass", "did not answer 'sizes' within 2 s"),
        ("ANSWER_S", 60.0, "rows == 1024 or __import__('os')._exit(3)", "died"),
        ("MOST_RUNS", 3, "pass", "too many runs"),
    ],
)
def test_an_endless_loop_and_a_death_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: float, then: str, words: str
) -> None:
    monkeypatch.setattr(sizes, name, limit)
    with pytest.raises(OracleError, match=words):
        vary_file(tmp_path, then=then)


def answer(**changes: Any) -> dict[str, Any]:
    told = {"values": {"rows": 4, "cols": 8}, "shapes": [[4, 8]], "integers": False, "fault": ""}
    return told | changes


def test_a_lie_in_the_jail_makes_no_workload(tmp_path: Path) -> None:
    with pytest.raises(OracleError, match="nonsensical"):
        vary_file(tmp_path, TELL.format(answer=answer(shapes=[[2**70]])))
    known = {"rows": 2**30, "cols": 2**30, "Model": 7, "elsewhere": 9}
    found = vary_file(tmp_path, TELL.format(answer=answer(values=known)))
    assert names(found) == ["default"]  # nothing that it says changes with the sizes


def test_what_it_says_of_a_failure_is_plain_text(tmp_path: Path) -> None:
    found = vary_file(tmp_path, TELL.format(answer=answer(fault="\x1b[2J\n" + "no" * 999)))
    assert names(found) == ["default"]
    assert "cannot be run without any data ([2Jnono" in found.remark
    assert found.remark.isprintable()
    assert len(found.remark) < 400
    silent = vary_file(tmp_path, TELL.format(answer=answer(fault="\n")))
    assert "(it failed without a message)" in silent.remark


@pytest.mark.parametrize(
    "changes",
    [
        {"values": {"rows": 0}},
        {"values": {"rows": [[1]]}},
        {"values": [["rows", 1]]},
        {"values": {"rows": 2**64}},
        {"shapes": [[-1]]},
        {"shapes": [[1] * 99]},
        {"shapes": [[]] * 9999},
        {"integers": "no"},
        {"fault": None},
    ],
)
def test_an_answer_without_sense_is_refused(changes: dict[str, Any]) -> None:
    assert Answer.read(json.loads(json.dumps(answer()))).shapes == ((4, 8),)
    with pytest.raises(OracleError, match="nonsensical"):
        Answer.read(json.loads(json.dumps(answer(**changes))))

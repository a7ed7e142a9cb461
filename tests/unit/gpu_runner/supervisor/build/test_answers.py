"""Answers of programs that a submission's process wrote are asked for again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.supervisor.build.answers import asked_again
from gpu_runner.supervisor.host import jail
from gpu_runner.supervisor.host.config import SupervisorConfig

HELLO = [sys.executable, "-c", "print('hello')"]
LISTED = ["cat", "/tmp/prepared/triton/kept"]
FORGED = {"code": 0, "merged": False, "stdout": ["str", "forged"], "stderr": None}


def key(command: Any, own: Any = None) -> str:
    return json.dumps([command, None, own or {}])


@pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
def test_answers_are_the_machine_s_own(tmp_path: Path) -> None:
    config = SupervisorConfig(cache_folder=tmp_path)
    failing = [sys.executable, "-c", "raise SystemExit(3)"]
    told = {key(command): FORGED for command in (HELLO, LISTED, failing, "echo $HOME", ["nobody"])}
    found = json.loads(
        asked_again(json.dumps(told).encode(), None, {"triton/kept": b"compiled"}, config)
    )
    answers = {command: answer["stdout"][1] for command, answer in found.items()}
    assert answers == {key(HELLO): "hello\n", key(LISTED): "compiled", key("echo $HOME"): "/tmp\n"}
    again = json.loads(
        asked_again(json.dumps(told).encode(), json.dumps(found).encode(), {}, config)
    )
    assert again[key(LISTED)] == found[key(LISTED)]  # what is known is not asked again


@pytest.mark.parametrize(
    "claimed",
    [
        None,
        b"nonsense",
        b"[]",
        b"[" * 100_000,
        json.dumps({"no command": FORGED}).encode(),
        json.dumps({key([1, 2]): FORGED}).encode(),
        json.dumps({key(HELLO, {"A": 1}): FORGED}).encode(),
        json.dumps({key(HELLO): 3}).encode(),
    ],
)
def test_what_is_no_list_of_answers_is_none(claimed: bytes | None, tmp_path: Path) -> None:
    assert asked_again(claimed, None, {}, SupervisorConfig(cache_folder=tmp_path)) == b"{}"

"""Work on several devices: every item once, and an end when the time is over."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_runner.data.verdict import DeviceKind
from tests.bench.spread import devices_of, workers

REPOSITORY = Path(__file__).parents[3]
PROGRAM = """
import sys
from tests.bench.spread import spread

def work(item, device):
    if item[0] == "x":
        raise ValueError("a bad item")
    return device, len(item)

if __name__ == "__main__":
    items = [letter * 200_000 for letter in sys.argv[2]]
    print(sorted(spread(work, items, devices=[3, 5], until=float(sys.argv[1]))))
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, str(program), *words],
        env={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_item_is_worked_on_once(tmp_path: Path) -> None:
    done = run(tmp_path, "inf", "abcdef")
    assert done.stdout.count("200000") == 6, done.stderr


def test_what_is_left_when_the_time_is_over_holds_nothing_up(tmp_path: Path) -> None:
    done = run(tmp_path, "0", "abcdef")
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_a_worker_that_fails_ends_the_work_with_its_words(tmp_path: Path) -> None:
    done = run(tmp_path, "inf", "xxabcdef")  # of which nobody reads the rest
    assert done.returncode == 1
    assert "a bad item" in done.stderr
    assert "RuntimeError: a worker died" in done.stderr


def test_devices_may_be_named() -> None:
    assert devices_of(DeviceKind.CPU) == devices_of(DeviceKind.CPU, "0,") == [0]
    for only in ("1", "x", "0-1"):
        with pytest.raises(SystemExit, match="--indices"):
            devices_of(DeviceKind.CPU, only)


@pytest.mark.parametrize("text", ["0", "-1", "two", ""])
def test_without_a_process_nothing_would_be_done(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number of processes"):
        workers(text)
    assert workers("2") == 2

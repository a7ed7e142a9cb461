"""Work on several devices: every item once, and an end when the time is over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_every_item_is_worked_on_once_or_left_when_the_time_is_over(tmp_path: Path) -> None:
    done = run(tmp_path, "inf", "abcdef")
    assert done.stdout.count("200000") == 6, done.stderr
    done = run(tmp_path, "0", "abcdef")
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_a_worker_that_fails_ends_the_work_with_its_words(tmp_path: Path) -> None:
    done = run(tmp_path, "inf", "xxabcdef")  # of which nobody reads the rest
    assert done.returncode == 1
    assert "a bad item" in done.stderr
    assert "RuntimeError: a worker died" in done.stderr

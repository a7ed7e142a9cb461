"""The database of the last release is brought up to date, and its pages are there."""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.release import STORED

ROOT = Path(__file__).parents[3]


def test_a_site_of_the_last_release_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "site.sqlite3"
    with sqlite3.connect(path) as database:
        database.executescript(gzip.decompress(STORED.read_bytes()).decode())
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{path}",
        "KBENCH_DATA_DIR": str(tmp_path),
        "KBENCH_ALLOWED_HOSTS": "localhost",
    }
    for command in (["manage.py", "migrate"], ["-m", "tests.release", "walk"]):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    assert "9 pages" in done.stdout

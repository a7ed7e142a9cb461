"""A test that failed by chance fails no CI, and is named; one that fails twice does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_try import MOST, main

FLAKY = """
import pathlib
def test_flaky():
    seen = pathlib.Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
def test_right(): pass
"""
WRONG = "def test_wrong(): assert False\ndef test_right(): pass\n"
MANY = "\n".join(f"def test_{number}(): assert False" for number in range(MOST))


@pytest.fixture(autouse=True)
def _without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def ran(folder: Path, name: str, text: str) -> Path:
    """A group of tests that has run, as `scripts/test` leaves it."""
    group = folder / name
    group.mkdir()
    (group / "test_toy.py").write_text(text)
    settings = ["-c", "/dev/null", "--rootdir", str(group), "-o", f"cache_dir={group}/cache"]
    command = [sys.executable, "-m", "pytest", "-q", *settings, str(group)]
    (group / "command").write_text("\n".join(command))
    (group / "status").write_text(str(subprocess.run(command, check=False).returncode))
    return folder


def test_what_passes_alone_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran(tmp_path, "right", "def test_right(): pass")
    assert main(ran(tmp_path, "flaky", FLAKY)) == 0
    last = capfd.readouterr().out.partition("a second try, alone, for 1 that failed")[2]
    assert "1 passed" in last
    assert "passed only alone" in last
    assert "test_toy.py::test_flaky (flaky)" in last


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WRONG, "failed twice:\n  test_toy.py::test_wrong (wrong)"),
        (MANY, "11 tests failed, too many for a second try"),
        ("import nothing_like_it", "pytest itself failed in: wrong"),
    ],
)
def test_what_is_wrong_fails(
    text: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran(tmp_path, "flaky", FLAKY)
    assert main(ran(tmp_path, "wrong", text)) == 1
    assert words in capfd.readouterr().out


def test_who_does_not_get_to_its_end_fails(tmp_path: Path) -> None:
    ran(tmp_path, "killed", FLAKY)
    (tmp_path / "killed" / "status").unlink()
    assert main(tmp_path) == 1

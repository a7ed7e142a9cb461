"""Gives the tests that failed in `scripts/test` a second try, after everything else and alone.

python -m tests.second_try FOLDER

FOLDER has a folder for each process of tests, with its command (a word a line), the exit status of
pytest and pytest's cache. Exit status 1 if a test failed twice, if too many failed once, or if
pytest ended in any other way. Tests that passed only alone are named last, so that somebody looks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MOST = 10
"""If more tests than these failed in all, something is broken, and a second try says nothing."""
TESTS_FAILED = 1
"""What pytest exits with if tests failed, and for no other reason."""
CHOICES = ("--record-statements=", "--cover-statements=")
"""Options that leave out what other tests cover (tests/statements.py). What failed runs again."""
AGAIN = ("--last-failed", "--last-failed-no-failures", "none")


@dataclass(frozen=True)
class Group:
    """One process of tests that has ended."""

    folder: Path

    @property
    def status(self) -> int | None:
        """What pytest exited with, if it got that far."""
        path = self.folder / "status"
        return int(path.read_text()) if path.exists() else None

    def failed(self) -> set[str]:
        """Tests that failed the last time they ran."""
        path = self.folder / "cache" / "v" / "cache" / "lastfailed"
        tests = json.loads(path.read_text()) if path.exists() else ()
        return {f"{test} ({self.folder.name})" for test in tests}

    def is_broken(self) -> bool:
        """Whether something else happened than that tests passed or failed."""
        failed = self.status == TESTS_FAILED and bool(self.failed())
        return self.status != 0 and not failed

    def try_again(self) -> bool:
        """Run what failed, and say whether it passes now."""
        words = (self.folder / "command").read_text().splitlines()
        command = [word for word in words if not word.startswith(CHOICES)]
        status = subprocess.run([*command, *AGAIN], check=False).returncode
        (self.folder / "status").write_text(str(status))
        return status == 0


def main(folder: Path) -> int:
    """Decide whether the tests passed, and print why."""
    groups = [Group(path.parent) for path in sorted(folder.glob("*/command"))]
    failed = {test for group in groups for test in group.failed()}
    broken = [group.folder.name for group in groups if group.is_broken()]
    if broken:
        return _fails(f"pytest itself failed in: {', '.join(broken)}", failed)
    if len(failed) > MOST:
        return _fails(f"{len(failed)} tests failed, too many for a second try", failed)
    if failed:
        print(f"== a second try, alone, for {len(failed)} that failed", flush=True)
    passed = [group.try_again() for group in groups if group.failed()]
    twice = {test for group in groups for test in group.failed()}
    if failed - twice:
        _tell("passed only alone, so find out why", failed - twice)
    if twice or not all(passed):
        return _fails("failed twice", twice)
    return 0


def _fails(reason: str, tests: set[str]) -> int:
    _tell(reason, tests)
    return 1


def _tell(words: str, tests: set[str]) -> None:
    print("\n".join([f"{words}:", *(f"  {test}" for test in sorted(tests))]), flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""A database made by kbench of 2026-11-25 is migrated, and what programs read keeps its numbers.

`tests/data/README.md` says what is in it. Its addresses were visited by `tests.old_site` on the
code that made it; the same program visits them here, on the code of today. The API and the CSV
files must say the same numbers. Pages are drawn anew from time to time: they must answer.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.old_postgres import new_database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
DATABASE = ROOT / "tests/data/database-2026-11-25.sql"
FIGURES = ROOT / "tests/data/database-2026-11-25.json"
MOMENT = "2026-11-25T13:00:00+00:00"
"""When the pages were visited; what they say of ages depends on it."""


_MANY_DIGITS = re.compile(r"(?<==)-?\d+\.\d{6,}(e[+-]?\d+)?$")
"""A number whose last digits depend on the order of additions."""


@dataclass(frozen=True)
class Change:
    """What addresses say no more, on purpose, and why; both patterns match whole."""

    addresses: str
    lost: str
    why: str


CHANGES: tuple[Change, ...] = (
    Change(
        addresses=r"/api/v1/submissions/.*",
        lost="quarantine=upheld",
        why="a case that a person decided against is called rejected",
    ),
    Change(
        addresses=r"/curate/history/\?format=csv",
        lost="act=.*",
        why="the column is called after the entry of the audit log",
    ),
    Change(
        addresses=r"/api/v1/leaderboard",
        lost=r".*",
        why="without a task the board shows each task's leader",
    ),
    Change(
        addresses=r"/api/v1/leaderboard\?by=(agent|model)&.*",
        lost=r".*",
        why="agents are judged by the problems that all of them tried",
    ),
    Change(
        addresses=r"/api/v1/leaderboard\?by=submission&.*",
        lost=r"(latency_ns|speedup_best)_(low|high)=.*",
        why="a half width holds of the logarithm: the ends differ in the fourth digit",
    ),
    Change(
        addresses=r"/api/v1/leaderboard\?by=submission&device=[\w-]+&task=scale(&format=csv)?",
        lost=r"sort=speedup|rank=\d+|tied=[fF]alse",
        why="the board of one task goes by time",
    ),
)
"""One that explains nothing any more fails the test."""


@dataclass(frozen=True)
class OldSite:
    """The migrated database, and the settings with which programs find it."""

    environment: dict[str, str]

    def run(self, *arguments: str) -> str:
        """What a Python program printed that ran to its end; it must succeed."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldSite]:
    """The old database after `manage.py migrate`; on PostgreSQL where the tests run there."""
    folder = tmp_path_factory.mktemp("old")
    path = folder / "kbench.sqlite3"
    with sqlite3.connect(path) as old:
        old.executescript(DATABASE.read_text())
    old.close()
    url = os.environ.get("DATABASE_URL", "")
    environment = {name: text for name, text in os.environ.items() if name != "DATABASE_URL"}
    environment |= {
        "KBENCH_DATA_DIR": str(folder),
        "KBENCH_LOG_LEVEL": "ERROR",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    if not url.startswith("postgres"):
        yield migrated(environment)
        return
    with new_database(url, f"kbench_old_{os.getpid()}") as address:
        environment["DATABASE_URL"] = address
        OldSite(environment).run("-m", "tests.old_postgres", str(path))
        yield migrated(environment)


def migrated(environment: dict[str, str]) -> OldSite:
    """The site of these settings, with its database migrated."""
    site = OldSite(environment)
    site.run("manage.py", "migrate", "--verbosity", "0")
    return site


def test_it_is_migrated_and_its_tables_fit_the_models(site: OldSite) -> None:
    site.run("manage.py", "migrate", "--check")
    site.run("manage.py", "makemigrations", "--check", "--dry-run")


def test_no_row_of_it_points_to_nothing(site: OldSite) -> None:
    look = "from django.db import connection; connection.check_constraints()"
    site.run("manage.py", "shell", "--verbosity", "0", "--command", look)


@pytest.mark.thorough(reason="a minute of visits; whoever adds a migration runs it")
def test_every_address_says_what_it_said(site: OldSite) -> None:
    record: dict[str, dict[str, str]] = json.loads(FIGURES.read_text())
    found = json.loads(site.run("-m", "tests.old_site", MOMENT, str(FIGURES)))
    used: set[Change] = set()
    pages = defaultdict(list)
    for address, groups in record.items():
        before = {visitor: groups[names] for names in groups for visitor in names.split()}
        for visitor, now in found[address].items():
            if words := difference(address, before[visitor], now, used):
                pages[words].append(f"{address} as {visitor}")
    told = [f"{words}\n    on {', '.join(places)}" for words, places in pages.items()]
    assert not told, "these addresses do not say what they said:\n" + "\n".join(told)
    assert not set(CHANGES) - used, "these changes explain nothing: take them away"


def difference(address: str, before: str, now: str, used: set[Change]) -> str:
    """What an address says no more, and no change explains; empty if nothing.

    What programs read may gain fields, but lose none; of a page, the status of the answer counts.
    """
    gone = counted(before) - counted(now)
    if not (address.startswith("/api/v1/") or "format=csv" in address):
        gone = Counter({figure: gone[figure] for figure in gone if figure.startswith("status ")})
    return "; ".join(sorted(figure for figure in gone if not explained(address, figure, used)))


def explained(address: str, figure: str, used: set[Change]) -> bool:
    """Whether a change says why; it is then among those that are used."""
    for change in CHANGES:
        if re.fullmatch(change.addresses, address) and re.fullmatch(change.lost, figure):
            used.add(change)
            return True
    return False


def counted(figures: str) -> Counter[str]:
    """How often each figure is said, to nine digits; the status of the answer is one of them."""
    status, *words = figures.split("; ")
    counts = Counter({f"status {status}": 1})
    for word in words:
        figure, _, count = word.partition(" *")
        counts[_MANY_DIGITS.sub(lambda found: f"{float(found[0]):.9g}", figure)] += int(count or 1)
    return counts

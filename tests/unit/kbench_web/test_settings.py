"""Wrong settings stop the site and say what to do; secrets and Redis servers are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SHOW = "from kbench_web import settings as s; print(s.SECRET_KEY, s.DATABASES['default']['ENGINE'])"
PRODUCTION = {"KBENCH_PRODUCTION": "1", "KBENCH_ALLOWED_HOSTS": "bench.example"}


def load(
    folder: Path, code: str = SHOW, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Import the settings in a process with these variables only."""
    kept = {"PATH": os.environ["PATH"], "KBENCH_DATA_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


WRONG = [
    (PRODUCTION, "KBENCH_SECRET_KEY must have at least 50"),
    ({**PRODUCTION, "KBENCH_SECRET_KEY": "short"}, "KBENCH_SECRET_KEY must have at least 50"),
    ({"KBENCH_PRODUCTION": "1", "KBENCH_SECRET_KEY": "x" * 50}, "KBENCH_ALLOWED_HOSTS must"),
    ({**PRODUCTION, "KBENCH_DEBUG": "1"}, "KBENCH_DEBUG shows secrets"),
    ({"KBENCH_PRODUCTION": "maybe"}, "KBENCH_PRODUCTION is 'maybe'; set it to 1 or 0"),
    ({"KBENCH_MAX_ATTEMPTS": "0"}, "KBENCH_MAX_ATTEMPTS is 0; the minimum is 1"),
    ({"KBENCH_SILENCE_S": "soon"}, "KBENCH_SILENCE_S is 'soon'; set it to a whole number"),
    ({"KBENCH_SIGN_UPS_PER_DAY": "0"}, "KBENCH_SIGN_UPS_PER_DAY is 0; the minimum is"),
    ({"DATABASE_URL": "mysql://a/b"}, "DATABASE_URL must begin with postgres://"),
    ({"DATABASE_URL": "nonsense"}, "DATABASE_URL"),
]
EACH = """
import json, os, sys
for variables in json.loads(sys.argv[1]):
    if os.fork() == 0:
        os.environ.update(variables)
        try:
            import kbench_web.settings
        except Exception as error:
            print(str(error).splitlines()[-1], flush=True)
        os._exit(0)
    os.wait()
"""
"""Imports the settings once for each set of variables."""


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    variables = json.dumps([each for each, _ in WRONG])
    done = load(tmp_path, EACH, variables)
    for said, (_, words) in zip(done.stdout.splitlines(), WRONG, strict=True):
        assert words in said, done.stderr


def test_production_starts_with_a_real_secret(tmp_path: Path) -> None:
    done = load(tmp_path, **PRODUCTION, KBENCH_SECRET_KEY="x" * 50, DATABASE_URL="postgres://h/d")
    assert done.stdout.split() == ["x" * 50, "django.db.backends.postgresql"], done.stderr


def test_each_installation_has_a_secret_of_its_own(tmp_path: Path) -> None:
    first, again = (load(tmp_path / "a").stdout.split()[0] for _ in range(2))
    other = load(tmp_path / "b").stdout.split()[0]
    assert len(first) >= 50
    assert first == again != other
    assert (tmp_path / "a" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_the_sites_commands_find_the_redis_that_it_started(tmp_path: Path) -> None:
    shown = "from kbench_web import settings as s; print(s.REDIS_URL, s.RUNNERS_REDIS_URL)"
    alone = "redis://127.0.0.1:6379/0"
    assert load(tmp_path, shown).stdout.split() == [alone, alone]
    for folder in ("redis", "redis-runners"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "url").write_text(f"redis://site:pw@{folder}:1/0\n")
    found = ["redis://site:pw@redis:1/0", "redis://site:pw@redis-runners:1/0"]
    assert load(tmp_path, shown).stdout.split() == found
    named = {"REDIS_URL": "redis://a/0", "KBENCH_RUNNERS_REDIS_URL": "redis://b/0"}
    assert load(tmp_path, shown, **named).stdout.split() == list(named.values())


def test_a_command_says_what_is_wrong_with_its_environment(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['manage.py', 'create_token', 'ada']; import manage; manage.main()"
    )
    for variables, words in (
        ({}, "kbench.sqlite3 is empty. Start the site with `make up` first"),
        ({"KBENCH_SIGN_UP": "x"}, "Error in the settings: KBENCH_SIGN_UP is 'x'"),
    ):
        done = load(tmp_path, code, **variables)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr

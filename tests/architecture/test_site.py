"""What Django itself can check of the site's code, and that each folder says what it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).parents[2]
APPS = ("kbench_client", "kbench_web", "leaderboard_app", "runs_app", "tasks_app")
DJANGOS = {"commands", "management", "migrations", "templatetags"}
"""Folders whose names Django gives, and everybody knows."""


@pytest.mark.django_db
def test_migrations_are_complete() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=1)


def test_system_checks_pass() -> None:
    call_command("check", "--fail-level", "WARNING")


def test_each_folder_says_its_story() -> None:
    packages = [path for app in APPS for path in sorted((ROOT / app).rglob("__init__.py"))]
    told = [path for path in packages if path.parent.name not in DJANGOS]
    assert len(told) > 30
    silent = [
        str(path.relative_to(ROOT))
        for path in told
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not silent

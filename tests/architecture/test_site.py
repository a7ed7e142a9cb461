"""What Django itself can check of the site's code."""

from __future__ import annotations

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_migrations_are_complete() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=1)


def test_system_checks_pass() -> None:
    call_command("check", "--fail-level", "WARNING")

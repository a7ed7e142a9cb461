"""When something was last taken from boards: what was kept of them before is shown no more."""

from __future__ import annotations

from uuid import uuid4

from django.core.cache import cache
from django.db import transaction

_KEY = "withdrawn"


def note() -> None:
    """Say, once this transaction is committed, that a result or a name must leave all boards."""
    transaction.on_commit(lambda: cache.set(_KEY, uuid4().hex, timeout=None))


def latest() -> str:
    """Stands for all that was noted so far; another text after each."""
    found: str = cache.get(_KEY, "")
    return found

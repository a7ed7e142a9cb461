"""Unit tests of the site run without Redis."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.queued import Jobs


KEPT = {"django_content_type", "auth_permission"}
"""Tables with rows that Django makes once it has made all tables."""


def is_unit() -> bool:
    """Whether the test that runs is one of this folder."""
    return "tests/unit/" in os.environ.get("PYTEST_CURRENT_TEST", "")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """After a test with real transactions only tables with rows are emptied.

    PostgreSQL truncates all hundred of them in a second. Those of other folders' tests are: there
    other processes write meanwhile.
    """
    from django.core.management.commands import flush
    from django.db import connection

    made = flush.emit_post_migrate_signal
    whole, quoted = connection.ops.sql_flush, connection.ops.quote_name

    def sql_flush(style: Any, tables: list[str], **options: bool) -> list[str]:
        if not is_unit() or any(options.values()):
            return list(whole(style, tables, **options))
        each = [f"SELECT '{t}' WHERE EXISTS (SELECT 1 FROM {quoted(t)})" for t in tables]
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(each))
            filled = {name for (name,) in cursor.fetchall()} - KEPT
        return [f"DELETE FROM {quoted(name)}" for name in sorted(filled)]

    def emit(*arguments: Any, **options: Any) -> None:
        if not is_unit():
            made(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection.ops, "sql_flush", sql_flush)
        patch.setattr(flush, "emit_post_migrate_signal", emit)
        yield


@pytest.fixture(autouse=True)
def _site_without_redis(request: pytest.FixtureRequest) -> None:
    """Sockets and cache live in memory, and nothing answers where Redis should be."""
    if request.node.get_closest_marker("site") is None:
        return
    settings = request.getfixturevalue("settings")
    settings.SUBMIT_SHIPPED_KERNELS = False  # tests of it say so
    settings.REDIS_URL = settings.RUNNERS_REDIS_URL = "redis://127.0.0.1:1/0"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    # A cache for each test: what one has counted does not limit the next.
    memory = "tests.unit.json_cache.JsonMemory"
    settings.CACHES = {"default": {"BACKEND": memory, "LOCATION": request.node.nodeid}}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast


@pytest.fixture(autouse=True)
def _pages_have_no_line_ends(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages come as a browser shows them: where a line of a template ends changes nothing."""
    if request.node.get_closest_marker("site") is None:
        return
    from django.test import Client

    whole = Client.request

    def asked(client: Client, **options: Any) -> Any:
        response = whole(client, **options)
        is_page = response.get("Content-Type", "").startswith("text/html")
        if is_page and not response.streaming and not response.has_header("Content-Encoding"):
            response.content = as_shown(response.content.decode()).encode()
        return response

    monkeypatch.setattr(Client, "request", asked)


def as_shown(page: str) -> str:
    """A page without its line ends, and without blanks beside what stands in a block of its own."""
    parts = re.split(r"(<(pre|textarea)\b.*?</\2>)", page, flags=re.DOTALL)
    for place in range(0, len(parts), 3):
        text = re.sub(r"\n\s*", " ", parts[place])
        parts[place] = re.sub(rf" ?(</?(?:{_BLOCKS})\b[^<>]*>) ?", r"\1", text)
    return "".join(part for place, part in enumerate(parts) if place % 3 < 2)


_BLOCKS = (
    "caption|d[dlt]|details|div|form|h[1-6]|li|ol|option|p|section|select|summary|t[dhr]|tbody"
    "|thead|ul"
)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Stands in for RQ."""
    from runs_app.core.messaging import orders
    from tests.unit.queued import Jobs

    fake = Jobs()
    for name in ("enqueue", "drop", "waiting", "tell"):
        monkeypatch.setattr(orders, name, getattr(fake, name))
    return fake

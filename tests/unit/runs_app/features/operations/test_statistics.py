"""SQLite is told about its tables; PostgreSQL is asked nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection

from runs_app.features.operations.upkeep import gather_statistics
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def test_statistics_are_gathered_where_nobody_else_does(django_assert_num_queries: Any) -> None:
    make.make_evaluation()
    cache.clear()
    if connection.vendor != "sqlite":
        with django_assert_num_queries(0):
            gather_statistics()
        return
    gather_statistics()
    with connection.cursor() as cursor:
        cursor.execute("SELECT idx FROM sqlite_stat1 WHERE tbl = 'runs_app_evaluation'")
        assert ("evaluation_latest",) in cursor.fetchall()
    with django_assert_num_queries(0):
        gather_statistics()


def test_the_ingester_gathers_them_when_it_begins(
    redis_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = redis_url
    gathered = []
    name = "runs_app.features.operations.upkeep.gather_statistics"
    monkeypatch.setattr(name, lambda: gathered.append(1))
    call_command("ingest_events", "--drain")
    assert gathered == [1]

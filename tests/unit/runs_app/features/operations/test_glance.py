"""The state of the site on one page, as metrics, and on its disk."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections import namedtuple
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from gpu_runner.data.queue import Urgency
from runs_app.features.operations import disk, hooks
from runs_app.features.operations.glance import glance
from runs_app.features.operations.hooks import gather_statistics
from runs_app.models import Evaluation, LanguageModel, LanguageModelCall
from tests import factories as make

pytestmark = pytest.mark.django_db
DASHBOARD = Path(__file__).parents[5] / "docs" / "grafana.json"


@pytest.fixture
def evaluations() -> list[Evaluation]:
    """One is correct, the runner failed twice for one reason, and one waits for an hour.

    An audit has waited for a day.
    """
    now = timezone.now()
    make.make_runner(seen_at=now)
    rows = [make.make_finished_evaluation() for _ in range(3)]
    ids = [row.pk for row in rows]
    Evaluation.objects.filter(pk__in=ids).update(finished_at=now)
    failed = {"verdict": "SYSTEM_ERROR", "latency_ns": None, "reason": "no memory"}
    Evaluation.objects.filter(pk__in=ids[1:]).update(**failed)
    waits = make.make_evaluation()
    Evaluation.objects.filter(pk=waits.pk).update(queued_at=now - timezone.timedelta(hours=1))
    audit = {
        "mode": "audit",
        "queue_place": Urgency.AUDITS.place,
        "queued_at": now - timezone.timedelta(days=1),
    }
    Evaluation.objects.filter(pk=make.make_evaluation(source="// other\n").pk).update(**audit)
    return [*rows, waits]


def told(client: Client, **headers: str) -> dict[tuple[str, ...], float]:
    """Values of the metrics by name and labels."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    samples = [sample for family in families for sample in family.samples]
    return {(each.name, *each.labels.values()): each.value for each in samples}


def test_errors_of_one_reason_are_one_line(evaluations: list[Evaluation]) -> None:
    now, elsewhere = timezone.now(), make.make_device(slug="elsewhere", imported_from="them")
    imported = make.make_finished_evaluation(source="// imported\n")
    canceled = make.make_evaluation(source="// canceled\n")
    for row, changed in ((imported, {"device": elsewhere}), (canceled, {"status": "CANCELLED"})):
        Evaluation.objects.filter(pk=row.pk).update(finished_at=now, **changed)
    seen = glance(timezone.now())
    assert dict(seen.verdicts) == {"SYSTEM_ERROR": 2, "CORRECT": 1}
    assert (seen.ended, sum(seen.by_hour), seen.ended_before) == (3, 3, 0)
    [trouble] = seen.troubles
    assert (trouble.reason, trouble.count) == ("no memory", 2)
    assert seen.oldest is not None
    assert seen.oldest.url == f"/submissions/{evaluations[-1].submission_id}/"


def test_the_page_leads_to_where_one_acts(client: Client, evaluations: list[Evaluation]) -> None:
    client.force_login(make.make_admin(username="judge"))
    page = client.get("/operate/").content.decode()
    _, *failed, waits = [f'href="/submissions/{row.submission_id}/"' in page for row in evaluations]
    assert any(failed)
    assert waits
    [link] = re.findall(r'href="(/admin/[^"]*=SYSTEM_ERROR[^"]*)"', page)
    assert client.get(unescape(link)).context["cl"].result_count == 2


@pytest.mark.usefixtures("evaluations")
def test_metrics_are_for_the_token_and_for_admins(
    client: Client, settings: pytest.FixtureRequest
) -> None:
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 403
    settings.METRICS_TOKEN = "secret"
    for words in ("", "Bearer ", "Bearer secrets", "Bearer é"):
        assert client.get("/metrics", headers={"Authorization": words}).status_code == 403
    values = told(client, authorization="Bearer secret")
    assert values["kbench_evaluations_hour", "cpu", "SYSTEM_ERROR"] == 2
    assert values["kbench_jobs_waiting", "cpu", "people"] == 1
    assert 3600 <= values["kbench_oldest_job_seconds", "cpu"] < 3700
    assert values["kbench_errors_day",] == 2
    client.force_login(make.make_admin(username="judge"))
    assert told(client).keys() == values.keys()
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = {name for panel in panels for name in re.findall(r"kbench_\w+", str(panel["targets"]))}
    assert asked <= {key[0] for key in values}, "the dashboard asks for what there is"


def test_calls_of_unknown_price_are_told_beside_the_money(client: Client) -> None:
    now, run = timezone.now(), make.make_run()
    for number, paid in enumerate((0.06, None), start=1):
        model = LanguageModel.objects.create(name=f"m{number}", created_at=now)
        LanguageModelCall.objects.create(
            run=run, number=number, role="propose", language_model=model, status="ANSWERED",
            messages=[], temperature=0.5, max_tokens=500, tokens_in=7000, cost_usd=paid,
            heard_at=now, ended_at=now, created_at=now,
        )  # fmt: skip
    client.force_login(make.make_admin(username="judge"))
    assert "$0.060 + unknown" in client.get("/operate/").content.decode()
    values = told(client)
    assert (values["kbench_spend_usd_day",], values["kbench_unpriced_calls_day",]) == (0.06, 1)


Usage = namedtuple("Usage", "total used free")
GIB = 1 << 30


def has(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(total, total - free, free))


def test_what_is_too_little(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    for total, free, low in (
        (1000 * GIB, 3 * GIB, False),
        (1000 * GIB, 2 * GIB - 1, True),
        (20 * GIB, GIB + 1, False),
        (20 * GIB, GIB - 1, True),
    ):
        has(monkeypatch, total, free)
        assert (disk.low_disk() is not None) is low
    monkeypatch.undo()
    settings.DATA_DIR = "/nowhere"  # a missing folder is no fault
    assert disk.low_disk() is None


@pytest.mark.django_db
def test_admins_read_it_and_others_do_not(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    client.force_login(make.make_admin())
    for free, shown in ((GIB, True), (3 * GIB, False)):
        has(monkeypatch, 1000 * GIB, free)
        for path in ("/operate/", "/queue/"):
            page = client.get(path).content.decode()
            assert ("1.0\xa0GB of 1000.0\xa0GB" in page) is shown
    has(monkeypatch, 1000 * GIB, GIB)
    for other in (Client(), client):
        if other is client:
            other.force_login(make.make_user())
        assert "1000.0\xa0GB" not in other.get("/queue/").content.decode()


@pytest.mark.django_db
def test_the_log_says_it_once_an_hour(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    has(monkeypatch, 1000 * GIB, GIB)
    disk._warn.cache_clear()
    for now_s in (0, 5, 3599, 3600, 3605):
        monkeypatch.setattr(disk.time, "time", lambda now_s=now_s: now_s)
        hooks.look_after(None, now=make.NOW)
    found = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len([each for each in found if "nothing more can be stored" in each.getMessage()]) == 2


@pytest.mark.usefixtures("jobs")
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
    name = "runs_app.features.operations.hooks.gather_statistics"
    monkeypatch.setattr(name, lambda: gathered.append(1))
    call_command("ingest_events", "--drain")
    assert gathered == [1]

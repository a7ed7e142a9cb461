"""The figures of `glance` for Prometheus; docs/operating.md explains how to collect them."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from runs_app.core.queue.loads import loads
from runs_app.core.queue.runners import runner_list
from runs_app.features.operations.disk import data_disk
from runs_app.features.operations.glance import DAY, ended, spent_usd, troubles, waiting_since

HOUR = timedelta(hours=1)


class SiteCollector(Collector):
    """Asks the database for each figure once a scrape."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All figures of the site; times are in seconds, sizes in bytes."""
        yield from self._jobs()
        yield from self._evaluations()
        since = self._now - DAY
        failed = sum(each.count for each in troubles(since))
        yield _gauge(
            "spend_usd_day", "US dollars spent on language models in a day", spent_usd(since)
        )
        yield _gauge("errors_day", "Jobs and calls that failed because of us in a day", failed)
        if disk := data_disk():
            yield _gauge("disk_free_bytes", "Free space on the disk of the data folder", disk.free)
            yield _gauge("disk_size_bytes", "Size of the disk of the data folder", disk.total)

    def _jobs(self) -> Iterator[GaugeMetricFamily]:
        waiting = _family("jobs_waiting", "Jobs in a device's queue", "device", "whose")
        running = _family("jobs_running", "Jobs that a device's runners are working on", "device")
        oldest = _family(
            "oldest_job_seconds", "Age of the oldest waiting job that people submitted", "device"
        )
        since = waiting_since()
        for load in loads(self._now):
            slug = load.device.slug
            waiting.add_metric([slug, "people"], load.people)
            waiting.add_metric([slug, "others"], load.behind)
            running.add_metric([slug], load.running)
            age = self._now - since.get(slug, self._now)
            oldest.add_metric([slug], max(age.total_seconds(), 0.0))
        yield from (waiting, running, oldest)

    def _evaluations(self) -> Iterator[GaugeMetricFamily]:
        labels = ("device", "verdict")
        count = _family("evaluations_hour", "Evaluations that ended in an hour", *labels)
        for each in ended(self._now - HOUR, self._now):
            count.add_metric([each.device, each.verdict or "CANCELLED"], each.count)
        runners = _family("runners", "Runners by state", "device", "state")
        states = Counter((each.runner.device_id, each.state) for each in runner_list(self._now))
        for labels, number in states.items():
            runners.add_metric([*labels], number)
        yield from (count, runners)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures as text, for whoever has the token of the settings, and for admins."""
    known = f"Bearer {settings.METRICS_TOKEN}" if settings.METRICS_TOKEN else ""
    told = request.headers.get("Authorization", "")
    has_token = bool(known) and secrets.compare_digest(told.encode(), known.encode())
    if not has_token and not (request.user.is_active and request.user.is_staff):
        raise PermissionDenied
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SiteCollector(timezone.now()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _family(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kbench_{name}", words, labels=labels)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kbench_{name}", words, value=value)

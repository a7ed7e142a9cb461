"""How the site is doing: throughput, failures, waiting jobs, money, disk and errors.

The page Operate shows these figures, and `metrics` tells them to Prometheus; docs/operating.md
explains how to collect them.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db.models import Count, F, Min, Q, QuerySet, Sum
from django.db.models.functions import TruncHour
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gpu_runner.data.queue import OF_PEOPLE
from runs_app.core.messaging import queues
from runs_app.core.queue.loads import Load, loads
from runs_app.core.queue.runners import runner_list
from runs_app.features.operations.disk import Disk, data_disk
from runs_app.models import JOBS, Evaluation, LanguageModelCall, RunnerJob, Status
from tasks_app.disclosure import sees_hidden

DAY = timedelta(days=1)
HOURS = 24  # chosen: the hours of a day, so the curve covers what the figures count
_MONTH = timedelta(days=30)  # chosen: as long as providers of language models bill
_MOST_READ = 500  # chosen: more errors in a day than anybody reads one by one
_MOST_SHOWN = 10  # chosen: what an admin looks at first fits on one screen
_OVER = (
    LanguageModelCall.Status.ANSWERED,
    LanguageModelCall.Status.FAILED,
    LanguageModelCall.Status.INTERRUPTED,
)


@dataclass(frozen=True)
class Ended:
    """How many evaluations ended on a device with a verdict; an empty one means cancelled."""

    device: str
    verdict: str
    count: int


@dataclass(frozen=True)
class Spent:
    """US dollars and tokens of calls of language models; those without a price cost nothing here.

    usd: None if none of them has a price. unpriced: how many used tokens at an unknown price.
    """

    usd: float | None
    tokens: int
    unpriced: int


@dataclass(frozen=True)
class Trouble:
    """An error that wasn't an author's fault: how often, the last time, and where to look."""

    what: str
    reason: str
    count: int
    at: datetime
    url: str


@dataclass(frozen=True)
class Oldest:
    """What people have waited longest for: on which device, since when, and where it's shown."""

    device: str
    queued_at: datetime
    url: str


@dataclass(frozen=True, kw_only=True)
class Glance:
    """The state of the site; "day" means the last 24 hours, and money is in US dollars."""

    by_hour: tuple[int, ...]
    """Evaluations measured to the end in each of the last 24 hours, oldest first."""
    ended: int
    ended_before: int
    """The same in the 24 hours before."""
    verdicts: list[tuple[str, int]]
    """Verdicts of the day, most frequent first."""
    since: datetime
    """When the day began."""
    loads: list[Load]
    oldest: Oldest | None
    day: Spent
    month: Spent
    disk: Disk | None
    troubles: list[Trouble]

    @property
    def waiting(self) -> int:
        """Jobs that wait on all devices."""
        return sum(load.waiting for load in self.loads)

    @property
    def people(self) -> int:
        """How many of these were submitted by people."""
        return sum(load.people for load in self.loads)


def glance(now: datetime) -> Glance:
    """The state of the site at `now`."""
    verdicts: Counter[str] = Counter()
    for each in ended(now - DAY, now):
        verdicts[each.verdict] += each.count
    return Glance(
        by_hour=_by_hour(now),
        ended=verdicts.total(),
        ended_before=_ended(now - 2 * DAY, now - DAY).count(),
        verdicts=verdicts.most_common(),
        since=now - DAY,
        loads=loads(now),
        oldest=_oldest(),
        day=spent(now - DAY),
        month=spent(now - _MONTH),
        disk=data_disk(),
        troubles=troubles(now - DAY)[:_MOST_SHOWN],
    )


def ended(since: datetime, until: datetime) -> list[Ended]:
    """How many evaluations ended between two moments, by device and verdict."""
    rows = _ended(since, until).values_list("device_id", "verdict").annotate(count=Count("pk"))
    return [Ended(*row) for row in rows]


def waiting_since() -> dict[str, datetime]:
    """By device: since when people have waited; without devices where nobody waits."""
    found: dict[str, datetime] = {}
    for job in JOBS.values():
        waiting = _of_people(job).order_by().values_list("device_id")
        for device, at in waiting.annotate(at=Min("queued_at")):
            found[device] = min(at, found.get(device, at))
    return found


def spent(since: datetime) -> Spent:
    """What those calls of language models took that ended since then."""
    calls = LanguageModelCall.objects.filter(status__in=_OVER, heard_at__gt=since)
    tokens = Sum(F("tokens_in") + F("tokens_out"), default=0)
    has_no_price = Q(cost_usd=None) & ~Q(tokens_in=0, tokens_out=0)
    unpriced = Count("pk", filter=has_no_price)
    found = calls.aggregate(usd=Sum("cost_usd"), tokens=tokens, unpriced=unpriced)
    usd = found["usd"] if found["tokens"] else 0.0
    return Spent(usd, found["tokens"], found["unpriced"])


def troubles(since: datetime) -> list[Trouble]:
    """Errors since then, most recent first; errors of one reason are one line."""
    found: dict[tuple[str, str], Trouble] = {}
    for each in [*_failed_jobs(since), *_failed_calls(since), *_failed_work(since)]:
        known = found.setdefault((each.what, each.reason), replace(each, count=0))
        newest = max(known, each, key=lambda one: one.at)
        found[each.what, each.reason] = replace(newest, count=known.count + 1)
    return sorted(found.values(), key=lambda each: each.at, reverse=True)


def _ended(since: datetime, until: datetime) -> QuerySet[Evaluation]:
    """Those that this site measured to the end."""
    done = Evaluation.objects.filter(status=Status.FINISHED, device__imported_from="").order_by()
    return done.filter(finished_at__gt=since, finished_at__lte=until)


def _by_hour(now: datetime) -> tuple[int, ...]:
    rows = _ended(now - DAY, now).annotate(hour=TruncHour("finished_at"))
    counts = dict(rows.values_list("hour").annotate(count=Count("pk")))
    this = now.replace(minute=0, second=0, microsecond=0)
    hours = [this - timedelta(hours=back) for back in reversed(range(HOURS))]
    return tuple(counts.get(hour, 0) for hour in hours)


def _oldest() -> Oldest | None:
    waiting = [_of_people(job).select_related("device") for job in JOBS.values()]
    firsts = [rows.order_by("queued_at").first() for rows in waiting]
    first = min(filter(None, firsts), key=lambda row: row.queued_at, default=None)
    return Oldest(first.device.name, first.queued_at, _url(first)) if first else None


def _of_people(job: type[RunnerJob]) -> QuerySet[RunnerJob]:
    """Waiting jobs, but none behind people's: audits and baselines may wait long on any site."""
    return job._default_manager.filter(job.waits_as(*OF_PEOPLE), status=Status.QUEUED)


def _failed_jobs(since: datetime) -> Iterable[Trouble]:
    for job in JOBS.values():
        rows = job._default_manager.filter(job.FAILED, status=Status.FINISHED)
        newest = rows.filter(finished_at__gt=since).order_by("-finished_at")
        for row in newest.select_related("device")[:_MOST_READ]:
            what = f"{capfirst(job._meta.verbose_name)} on {row.device.name}"
            yield Trouble(what, row.reason, 1, row.finished_at or since, _url(row))


def _failed_calls(since: datetime) -> Iterable[Trouble]:
    rows = LanguageModelCall.objects.filter(status__in=_OVER[1:], heard_at__gt=since)
    shown = ("language_model_id", "language_model__name", "error", "ended_at")
    for key, name, error, at in rows.order_by("-heard_at").values_list(*shown)[:_MOST_READ]:
        url = reverse("language-model-edit", args=[key])
        yield Trouble(f"Call of {name}", error, 1, at, url)


def _failed_work(since: datetime) -> Iterable[Trouble]:
    """What the site's own workers failed to do, with the last line of the traceback."""
    for job in queues.failed_jobs():
        at = job.ended_at or since
        result = job.latest_result()
        lines = (result.exc_string or "").strip().splitlines() if result else []
        name = str(job.func_name).rpartition(".")[2].replace("_", " ")
        is_step = job.func_name == queues.ADVANCE_FUNCTION
        url = reverse("run", args=job.args) if is_step else ""
        if at >= since:
            yield Trouble(f"Worker: {name}", lines[-1] if lines else "it was lost", 1, at, url)


def _url(job: RunnerJob) -> str:
    """Where an admin cancels a job or repeats it, or else where it's read."""
    if isinstance(job, Evaluation):
        return reverse("submission", args=[job.submission_id])
    return reverse(f"admin:runs_app_{job._meta.model_name}_change", args=[job.pk])


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
        words = "US dollars spent on language models in the last day"
        day = spent(since)
        yield _gauge("spend_usd_day", words, day.usd or 0.0)
        words = "Calls of language models whose price is unknown, in the last day"
        yield _gauge("unpriced_calls_day", words, day.unpriced)
        yield _gauge("errors_day", "Jobs and calls that failed because of us, last day", failed)
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
        count = _family("evaluations_hour", "Evaluations that ended in the last hour", *labels)
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
    if not has_token and not sees_hidden(request.user):
        raise PermissionDenied
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SiteCollector(timezone.now()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _family(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kbench_{name}", words, labels=labels)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kbench_{name}", words, value=value)

"""Every page and answer of the site, as a visitor and as an admin: time and number of queries."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver

from runs_app.models import Agent, Candidate, Evaluation, LanguageModel, Run, Submission
from tasks_app.models import Task
from tests.bench.tables import percentile

_MOST, _FEWEST = 6, 2
_PATIENCE_S = 1.0
"""Seconds after which an address is asked no more, once it was asked `_FEWEST` times."""
_LEFT_OUT = ("logout", "sign-out", "set_language", "jsi18n", "static")
_VARIANTS = {
    "leaderboard": (
        "device=cpu", "by=matrix&device=cpu", "by=submission&device=cpu",
        "by=agent&device=cpu", "by=model&device=cpu", "task={slug}&device=cpu",
        "by=agent&device=cpu&direction=forward", "by=submission&device=cpu&who=agent",
        "device=cpu&verified=1", "device=cpu&page=100", "by=agent&task={slug}&device=cpu",
    ),
    "api:show_leaderboard": (
        "device=cpu&limit=100", "device=cpu&limit=100&after=5000", "by=agent&device=cpu",
        "task={slug}&device=cpu", "device=cpu&task={slug}&format=csv",
    ),
    "runs": ("task={slug}", "page=30", "status=FINISHED&strategy=islands"),
    "api:list_runs": ("limit=200",),
    "submit": ("task={slug}",),
    "run-compare": ("run={run_id}&run={other_run}",),
}  # fmt: skip
"""Query strings that are asked for beside the bare address."""


@dataclass
class Timing:
    """What one address took."""

    address: str
    name: str
    status: int = 0
    queries: int = 0
    kib: float = 0.0
    times_ms: list[float] = field(default_factory=list)
    own_ms: list[float] = field(default_factory=list)

    @property
    def first_ms(self) -> float:
        """With empty caches."""
        return self.times_ms[0]

    @property
    def cpu_ms(self) -> float:
        """Median of this process's own work, without the database server's and other programs'."""
        return percentile(self.own_ms, 0.5)

    @property
    def p95_ms(self) -> float:
        """Of the requests after the first; of it alone where there was no other."""
        return percentile(self.times_ms[1:] or self.times_ms, 0.95)


def addresses() -> Iterator[tuple[str, str]]:
    """Name and address of everything that can be asked for, filled in from rows."""
    values = sample()
    for name, route in _routes(get_resolver()):
        if name.startswith("admin:") and not name.endswith(("_changelist", "index")):
            continue
        if any(word in name for word in _LEFT_OUT):
            continue
        try:
            path = "/" + route.format(**values)
        except KeyError:
            continue  # it needs a row that a seeded site does not have
        yield name, path
        for query in _VARIANTS.get(name, ()):
            yield name, f"{path}?{query.format(**values)}"


def sample() -> dict[str, Any]:
    """Values for the parameters of addresses: rows that have much to show."""
    evaluation = (
        Evaluation.objects.filter(verdict="CORRECT", submission__private=False)
        .order_by("-finished_at")
        .first()
    )
    assert evaluation is not None, "the database is not seeded"
    runs = list(Run.objects.filter(private=False, status="FINISHED").order_by("-created_at")[:2])
    task = Task.objects.get(pk=evaluation.task_version.task_id)
    return {
        "slug": task.slug,
        "number": evaluation.task_version.number,
        "submission_id": evaluation.submission_id,
        "evaluation_id": evaluation.pk,
        "run_id": runs[0].pk,
        "other_run": runs[-1].pk,
        "agent_id": Agent.objects.order_by("pk").values_list("pk", flat=True)[0],
        "language_model_id": LanguageModel.objects.order_by("pk").values_list("pk", flat=True)[0],
        "username": Submission.objects.get(pk=evaluation.submission_id).author.get_username(),
        "candidate": Candidate.objects.order_by("pk")[0].number,
    }


def measure(*, as_admin: bool, only: str = "") -> list[Timing]:
    """Ask for every address some times; those that refuse a GET are left out."""
    client = Client(raise_request_exception=False, headers={"accept-encoding": "gzip"})
    if as_admin:
        client.force_login(User.objects.filter(is_superuser=True)[0])
    cache.clear()
    gc.collect()
    gc.freeze()  # as the web server does once it is loaded
    found = []
    for name, path in addresses():
        if only in path:
            found.append(_time(client, name, path))
    return [each for each in found if each.status in (200, 500)]


def _time(client: Client, name: str, path: str) -> Timing:
    timing = Timing(path, name)
    began = time.perf_counter()
    with CaptureQueriesContext(connection) as queries:
        _ask(client, path, timing)
    timing.queries = len(queries)
    while timing.status == 200 and len(timing.times_ms) < _MOST:
        if time.perf_counter() - began > _PATIENCE_S and len(timing.times_ms) >= _FEWEST:
            break
        _ask(client, path, timing)
    return timing


def _ask(client: Client, path: str, timing: Timing) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    answer = client.get(path)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[arg-type]
    timing.times_ms.append((time.perf_counter() - began) * 1000)
    timing.own_ms.append((time.process_time() - cpu) * 1000)
    timing.status, timing.kib = answer.status_code, len(body) / 1024


def _routes(
    resolver: URLResolver, prefix: str = "", namespace: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Name and route, such as `tasks/{slug}/`, of all that the site answers."""
    for entry in resolver.url_patterns:
        route = prefix + _filled(str(entry.pattern))
        if isinstance(entry, URLResolver):
            inner = (*namespace, entry.namespace) if entry.namespace else namespace
            yield from _routes(entry, route, inner)
        elif isinstance(entry, URLPattern) and entry.name:
            yield ":".join((*namespace, entry.name)), route


def _filled(pattern: str) -> str:
    """`<uuid:run_id>` and `<run_id>` as `{run_id}`."""
    parts = pattern.replace("<", "\0{").replace(">", "}\0").split("\0")
    return "".join(
        "{" + part[1:-1].rpartition(":")[2] + "}" if part.startswith("{") else part
        for part in parts
    )

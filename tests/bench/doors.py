"""How late a runner holds a job, and how late the site knows an event: over Redis and HTTPS.

    python -m tests.bench.doors [--jobs 100] [--json FILE]

Starts the site's web server and ingester with a Redis and a database of their own. Two runners
wait, each for a device of its own: one over Redis, one over HTTPS (here over loopback, without
TLS). They take stand-in jobs by turns, and report on them; nothing is evaluated. Exit status 1 if
HTTPS adds more than 100 ms to a job.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import secrets
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_runner.daemon.sources.contract import Away, Source
from gpu_runner.daemon.sources.https_source import HttpsSource
from gpu_runner.daemon.sources.redis_source import RedisSource
from gpu_runner.data.event import EventKind
from gpu_runner.data.order import Ask, Order
from gpu_runner.data.queue import Urgency

MOST_MS = 100.0
"""So much HTTPS may add to a job: far below what an evaluation takes."""
_SETTLING_S = 0.1  # until the runner waits for its next job
_LOOK_S = 0.002  # how often a row is looked at
_PATIENCE_S = 30.0


@dataclass
class Door:
    """A runner that waits behind a door, and the delays of its jobs in milliseconds."""

    name: str
    source: Source
    runner: str
    held: queue.SimpleQueue[tuple[Order, float]] = field(default_factory=queue.SimpleQueue)
    free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(1))
    job_ms: list[float] = field(default_factory=list)
    event_ms: list[float] = field(default_factory=list)

    @property
    def device(self) -> str:
        """The one that it serves."""
        return f"bench-{self.runner}"

    def start(self) -> None:
        """Take one job after another, each once the one before is over."""
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            self.free.acquire()
            order = None
            while order is None:
                ask = Ask(
                    runner=self.runner,
                    boot_id="boot-1",
                    device=self.device,
                    urgencies=tuple(Urgency),
                    ticket=secrets.token_hex(16),
                )
                with suppress(Away):
                    order = self.source.take(ask)
            self.held.put((order, time.perf_counter()))


def main() -> int:
    """Measure, and print the table."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="kbench-doors-") as name, _site(Path(name)) as url:
        doors = _doors(url)
        for door in doors:
            door.start()
        for _ in range(options.jobs):
            for door in doors:
                _measure(door)
    return _say(options, doors)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.doors", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--jobs", type=int, default=100, help="for each door")
    parser.add_argument("--json", type=Path, help="file for all delays")
    return parser.parse_args()


@contextmanager
def _site(folder: Path) -> Iterator[str]:
    """The address of a site with a fresh database; it is this process's own site, too."""
    os.environ |= {"KBENCH_DATA_DIR": str(folder), "KBENCH_LOG_LEVEL": "ERROR"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "kbench_web.settings"
    os.environ["KBENCH_SUBMIT_SHIPPED_KERNELS"] = "0"
    for variable in ("DATABASE_URL", "KBENCH_RUNNERS_REDIS_URL"):
        os.environ.pop(variable, None)
    from tests.conftest import RedisServer, free_port

    redis = RedisServer(folder)
    redis.start()
    os.environ["REDIS_URL"] = redis.url
    try:
        import django

        django.setup()
        from django.core.management import call_command

        from tests.bench.scale.watchers import site

        call_command("migrate", verbosity=0)
        port = free_port()
        with site(port):
            yield f"http://127.0.0.1:{port}"
    finally:
        redis.stop()


def _doors(url: str) -> list[Door]:
    """Both, each with a token; the site has heard their runners."""
    from runs_app.core.runners.tokens import grant_login
    from runs_app.models import Runner
    from tests import factories as make

    by_redis = make.make_runner_token(name="by-redis")
    text = "kbr_" + secrets.token_urlsafe(32)
    make.make_runner_token(name="by-https", digest=_digest(text))
    doors = [
        Door("Redis", RedisSource(grant_login(by_redis)), "redis"),
        Door("HTTPS", HttpsSource(url, text), "https"),
    ]
    for door in doors:
        beat = make.make_heartbeat(name=door.runner, device=door.device, device_name=door.name)
        door.source.send(beat)
    _wait(lambda: Runner.objects.count() == len(doors), "the runners are not heard")
    return doors


def _digest(text: str) -> str:
    from runs_app.core.runners.tokens import digest

    return digest(text)


def _measure(door: Door) -> None:
    """One job: submitted, handed over, reported on, and cancelled."""
    from django.db import transaction
    from django.utils import timezone

    from gpu_runner.data.verdict import Mode
    from runs_app.core.work import lifecycle
    from runs_app.models import Device
    from tests import factories as make

    time.sleep(_SETTLING_S)
    submission = _submission()
    committed: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: committed.append(time.perf_counter()))
        job = lifecycle.evaluate(
            submission=submission,
            device=Device.objects.get(slug=door.device),
            mode=Mode.QUICK,
            now=timezone.now(),
        )
    order, held_at = door.held.get(timeout=_PATIENCE_S)
    assert order.job_id == str(job.pk), "the runner got another job"
    door.job_ms.append((held_at - committed[0]) * 1000)
    rows = type(job).objects.filter(pk=job.pk)
    for seq, kind in ((1, EventKind.STARTED), (2, EventKind.ALIVE)):
        event = make.make_event(job, seq=seq, kind=kind, payload={"runner": door.runner, "at": 0.0})
        sent_at = time.perf_counter()
        door.source.send(event)
        _wait(lambda: rows.filter(last_seq__gte=seq).exists(), "an event is not recorded")  # noqa: B023
        door.event_ms.append((time.perf_counter() - sent_at) * 1000)
    with transaction.atomic():
        lifecycle.cancel(lifecycle.lock(type(job), job.pk), reason="measured", now=timezone.now())
    door.free.release()


def _submission() -> Any:
    from runs_app.models import Submission
    from tests import factories as make

    return Submission.objects.first() or make.make_submission()


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(_LOOK_S)


def _say(options: argparse.Namespace, doors: list[Door]) -> int:
    from tests.bench.tables import percentile, table

    rows = []
    for door in doors:
        figures = [percentile(v, s) for v in (door.job_ms, door.event_ms) for s in (0.5, 0.95)]
        rows.append([door.name, *(f"{figure:.0f}" for figure in figures)])
    columns = ("door", "commit to held, p50 ms", "p95 ms", "sent to row, p50 ms", "p95 ms")
    print(table(columns, rows))
    redis, https = (
        statistics.median(door.job_ms) + statistics.median(door.event_ms) for door in doors
    )
    print(f"HTTPS adds {https - redis:.0f} ms to a job and its event, {https / redis:.2f}x")
    if options.json:
        document = {door.name: {"job": door.job_ms, "event": door.event_ms} for door in doors}
        options.json.write_text(json.dumps(document) + "\n")
    return int(https - redis > MOST_MS)


if __name__ == "__main__":
    raise SystemExit(main())

"""`python -m tests.bench.scale`: seed a site and measure it, on the database of DATABASE_URL.

`make bench-site` runs it on SQLite and on PostgreSQL, with a million evaluations.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).with_name("figures.json")
"""The figures of the last full measurement, which new ones are printed beside."""
TARGETS = {"pages": 150.0, "watchers": 100.0, "ingest": 1000.0}
"""A page's p95 and a message's p99 in milliseconds; events a second."""
PARTS = ("pages", "ingest", "watchers")


def main() -> None:
    """Seed unless the folder holds a seeded site, measure, and print a table of each part."""
    options = _options()
    folder = Path(options.data or tempfile.mkdtemp(prefix="kbench-scale-"))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"KBENCH_DATA_DIR": str(folder), "KBENCH_LOG_LEVEL": "ERROR"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "kbench_web.settings"
    os.environ["KBENCH_API_REQUESTS_PER_MINUTE"] = "1000000"
    os.environ["KBENCH_SILENCE_S"] = "3600"  # of an evaluation, while its watchers connect
    from tests.conftest import RedisServer

    redis = RedisServer(folder)
    redis.start()
    os.environ["REDIS_URL"] = redis.url
    try:
        _measure(options)
    finally:
        redis.stop()
        if not options.data:
            shutil.rmtree(folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    parser.add_argument("--data", help="folder of a site that is kept, and seeded if it is new")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", default="", help="pages whose address has this in it")
    parser.add_argument("--keep-figures", action="store_true", help=f"write {FIGURES.name}")
    return parser.parse_args()


def _measure(options: argparse.Namespace) -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    settings.ALLOWED_HOSTS = ["*"]
    call_command("migrate", verbosity=0)
    _seed(options.evaluations)
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    before = figures.get(connection.vendor, {})
    print(f"\n## {connection.vendor}, {options.evaluations:,} evaluations", flush=True)
    found: dict[str, Any] = {}
    for part in options.parts:
        found |= _PARTS[part](options, before)
    if options.keep_figures:
        figures[connection.vendor] = before | found
        FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")


def _seed(evaluations: int) -> None:
    from django.db import connection

    from runs_app.models import Evaluation
    from tests import factories
    from tests.bench.scale.seed import Seed

    if Evaluation.objects.exists():
        return
    began = time.perf_counter()
    counts = Seed(evaluations, datetime.now(UTC)).store()
    factories.make_admin(username="admin")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    print(f"seeded in {time.perf_counter() - began:.0f} s: {counts}", file=sys.stderr, flush=True)


def _pages(options: argparse.Namespace, before: Mapping[str, Any]) -> dict[str, Any]:
    from tests.bench.scale.pages import measure
    from tests.bench.tables import table

    rows, found = [], {}
    for who in ("visitor", "admin"):
        for each in measure(as_admin=who == "admin", only=options.only):
            key = f"{who} {each.name} {each.address.partition('?')[2]}".strip()
            earlier = before.get(key)
            found[key] = round(each.p95_ms, 1)
            over = "**" if each.p95_ms > TARGETS["pages"] or each.status != 200 else ""
            rows.append((each.p95_ms, [
                who, f"`{each.address[:90]}`", str(each.status), f"{each.kib:.0f}",
                str(each.queries), f"{each.first_ms:.0f}", f"{over}{each.p95_ms:.0f}{over}",
                f"{each.cpu_ms:.0f}",
                "" if earlier is None else f"{earlier:.0f}",
            ]))  # fmt: skip
    rows.sort(key=lambda row: -row[0])
    columns = (
        "as",
        "address",
        "status",
        "KiB",
        "queries",
        "first ms",
        "p95 ms",
        "CPU ms",
        "p95 before",
    )
    print(table(columns, [row for _, row in rows]), flush=True)
    slow = sum(p95 > TARGETS["pages"] for p95, _ in rows)
    print(f"{slow} of {len(rows)} above {TARGETS['pages']:.0f} ms", flush=True)
    return found


def _ingest(options: argparse.Namespace, before: Mapping[str, Any]) -> dict[str, Any]:
    from tests.bench.scale.ingest import events_per_second

    rate, own = events_per_second()
    print(
        f"ingest: {rate:.0f} events/s, {own:.0f} for a second of processor time"
        f" (target {TARGETS['ingest']:.0f}; before: {before.get('ingest')})",
        flush=True,
    )
    return {"ingest": round(rate)}


def _watchers(options: argparse.Namespace, before: Mapping[str, Any]) -> dict[str, Any]:
    from tests.bench.scale.watchers import delays_ms
    from tests.bench.tables import percentile

    delays, sent, own = delays_ms(watchers=1000, events_per_s=5, seconds=20)
    p50, p99 = (percentile(delays, share) if delays else float("nan") for share in (0.5, 0.99))
    print(
        f"watchers: {len(delays)} of {sent} messages; p50 {p50:.0f} ms, p99 {p99:.0f} ms"
        f", {own:.0f} s of processor time"
        f" (target {TARGETS['watchers']:.0f}; before: {before.get('watchers')})",
        flush=True,
    )
    return {"watchers": round(p99)}


_PARTS = {"pages": _pages, "ingest": _ingest, "watchers": _watchers}

if __name__ == "__main__":
    main()

"""A site of its own process, with a runner that only pretends: `python -m` this, and a port.

Its one task is `scale`. A kernel is right if one of its files says `good`; `fault` is our own
fault, and the speedup is the number after `speed`: `// good speed=3`. The first line printed is a
token. Started again with the same KBENCH_DATA_DIR, it goes on with the same database.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402 - after the set-up
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import OperationalError, connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from gpu_runner.data.verdict import Verdict  # noqa: E402
from runs_app.core.work.lifecycle import retry_or_give_up  # noqa: E402
from runs_app.models import Evaluation, Status  # noqa: E402
from tests import factories as make  # noqa: E402
from tests.unit.runs_app.features.walk import without_redis  # noqa: E402

_RUNS_S = 0.05  # how long the runner pretends to need


def main(port: int) -> None:
    """Serve until killed."""
    without_redis()
    call_command("migrate", verbosity=0)
    known = Path(settings.DATA_DIR, "token")
    if not known.exists():
        make.make_task_version()
        make.make_runner()
        known.write_text(make.make_token(make.make_user(username="ada")))
    assert User.objects.exists()
    server = ThreadedWSGIServer(("127.0.0.1", port), Quiet)
    server.set_app(get_wsgi_application())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(known.read_text(), flush=True)
    while True:
        time.sleep(_RUNS_S)
        try:
            run_one()
        except OperationalError:  # SQLite was busy
            connection.close()


def run_one() -> None:
    """End the evaluation that has waited longest; first, queue again what a kill left begun."""
    for lost in Evaluation.objects.filter(status=Status.RUNNING):
        with transaction.atomic():
            retry_or_give_up(lost, reason="the runner is gone", now=timezone.now())
    waiting = Evaluation.objects.filter(status=Status.QUEUED).order_by("created_at", "pk")
    row = waiting.select_related("submission").first()
    if row is None:
        return
    source = row.submission.source + "".join(row.submission.files.values())
    if "fault" in source:
        make.finish(row, verdict=Verdict.SYSTEM_ERROR, reason="the host is broken")
    elif "good" not in source:
        make.finish(row, verdict=Verdict.WRONG_RESULT, reason="element 3 of out is wrong")
    else:
        speed = re.search(r"speed=(\d+)", source)
        make.finish(row, latency_ns=1500.0 / int(speed[1] if speed else 1))


class Quiet(WSGIRequestHandler):
    """Prints nothing."""

    def log_message(self, format: str, *values: object) -> None:
        """Leave it out."""


if __name__ == "__main__":
    main(int(sys.argv[1]))

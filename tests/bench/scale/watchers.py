"""How late watchers hear of an event: from the runner's stream to a thousand sockets."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from django.core.management import call_command
from django.utils import timezone

from gpu_runner.data import codec, mailbox
from gpu_runner.data.event import EventKind
from gpu_runner.data.verdict import Stage
from kbench_web.processes.installation import programs
from runs_app.core.messaging import orders
from runs_app.core.runners.reconcile import reconcile
from runs_app.models import Evaluation
from tests import factories as make
from tests.bench.scale.ingest import held, stream_of
from tests.conftest import free_port

_ROOT = Path(__file__).parents[3]
_AT_ONCE = 50
"""Sockets that connect at the same time."""
_LAST_S = 5.0


def delays_ms(watchers: int, events_per_s: float, seconds: float) -> tuple[list[float], int, float]:
    """Milliseconds from XADD to the arrival at each socket, and how many were to arrive.

    The last is the processor time of the site's programs, connecting included, in seconds.
    """
    ever = datetime.fromtimestamp(0, UTC)  # Redis knows nothing yet of what is seeded as waiting
    reconcile(now=timezone.now(), listening_since=ever)
    call_command("ingest_events", "--drain", verbosity=0)  # once a day SQLite counts for seconds
    (evaluation,) = held(1)
    port = free_port()
    count = int(events_per_s * seconds)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with site(port):
        heard = asyncio.run(_watch(evaluation, port, watchers, count, 1 / events_per_s))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return heard, watchers * count, own


@contextmanager
def site(port: int) -> Iterator[None]:
    """The web server and the ingester of an installation, as `up` starts them."""
    with ExitStack() as stack:
        for each in programs("127.0.0.1", port, call_workers=1):
            if each.name not in ("web", "ingest"):
                continue
            command = each.command
            if each.name == "ingest":
                command = [sys.executable, "manage.py", "ingest_events"]
            process = subprocess.Popen(command, cwd=_ROOT, env=os.environ)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/sign-in/", timeout=5).close()
                break
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)
        yield


async def _watch(
    evaluation: Evaluation, port: int, watchers: int, count: int, pause_s: float
) -> list[float]:
    sent: dict[int, float] = {}
    delays: list[float] = []
    sockets: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    path = f"/ws/evaluations/{evaluation.pk}/"
    for start in range(0, watchers, _AT_ONCE):
        joining = (_open(port, path) for _ in range(min(_AT_ONCE, watchers - start)))
        sockets += await asyncio.gather(*joining)
    listening = [asyncio.create_task(_listen(reader, sent, delays)) for reader, _ in sockets]
    await asyncio.sleep(1)
    redis, stream = orders.connection(), stream_of([evaluation])
    for seq in range(1, count + 1):
        payload = {"stage": Stage.BUILD.value, "state": "done", "detail": str(seq)}
        kind = EventKind.STAGE
        event = make.make_event(evaluation, seq=seq, kind=kind, payload=payload)
        document = json.dumps(codec.encode(event))
        sent[seq] = time.perf_counter()
        redis.xadd(stream, {mailbox.EVENT: document})
        await asyncio.sleep(pause_s)
    await asyncio.sleep(_LAST_S)
    for task in listening:
        task.cancel()
    for _, writer in sockets:
        writer.close()
    return delays


async def _open(port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = base64.b64encode(secrets.token_bytes(16)).decode()
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Origin: http://127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
    )
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(f"the socket was refused: {head.decode(errors='replace')}")
    return reader, writer


async def _listen(
    reader: asyncio.StreamReader, sent: dict[int, float], delays: list[float]
) -> None:
    """Note how late each stage comes; frames of a server are not masked."""
    while True:
        kind, length = await reader.readexactly(2)
        size = length & 127
        if size == 126:
            size = int.from_bytes(await reader.readexactly(2), "big")
        elif size == 127:
            size = int.from_bytes(await reader.readexactly(8), "big")
        body = await reader.readexactly(size)
        now = time.perf_counter()
        if kind & 15 == 1 and b'"kind": "stage"' in body:
            # the client's own reading of JSON would take longer than the message
            number = body.partition(b'"detail": "')[2].partition(b'"')[0]
            delays.append((now - sent[int(number)]) * 1000)

"""The upward door: what is sent, what is kept, and in which order."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import redis

from gpu_runner.daemon.events import Outbox, Reporter, report_or_keep, tell
from gpu_runner.daemon.sources.contract import Away, Refused
from gpu_runner.daemon.sources.redis_source import RedisSource
from gpu_runner.data.check import CheckRequest
from gpu_runner.data.event import Event, EventKind
from tests.conftest import RedisServer
from tests.unit.gpu_runner.daemon.running import EVENTS, login, read_events


def event(seq: int, kind: EventKind = EventKind.STAGE) -> Event:
    payload = {"value": float("nan")}
    return Event(job=CheckRequest.KIND, job_id="e1", attempt=1, seq=seq, kind=kind, payload=payload)


def test_the_reporter_never_waits_and_keeps_the_last_word(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    url = redis_server.url.replace("://", "://runner-1:pw@")
    redis_server.stop()
    connection = redis.Redis.from_url(redis_server.url)
    source, outbox = RedisSource(url), Outbox(tmp_path / "outbox")
    reporter = Reporter(source, outbox)
    began = time.monotonic()
    reporter.publish(event(1))
    reporter.publish(event(2, EventKind.FINISHED), keep=True)
    assert time.monotonic() - began < 5
    reporter.close(0.2)
    with pytest.raises(Away):
        outbox.flush(source)
    redis_server.start()
    login(redis_server.url)
    assert outbox.flush(source) == 1
    assert outbox.flush(source) == 0
    assert [found.seq for found in read_events(connection, "e1")] == [2]


def test_a_loss_comes_after_what_was_kept_and_a_broken_file_holds_up_none(
    redis_url: str, tmp_path: Path
) -> None:
    connection, source = redis.Redis.from_url(redis_url), RedisSource(login(redis_url))
    outbox = Outbox(tmp_path)
    (tmp_path / "0.json").write_text('{"evaluation_id":')
    outbox.keep(event(4))
    report_or_keep(event(5, EventKind.LOST), source, outbox)
    assert [found.seq for found in read_events(connection, "e1")] == [4, 5]
    assert (tmp_path / "0.unreadable").exists()
    (_, fields), _ = connection.xrange(EVENTS)
    assert list(fields) == [b"event"]
    assert b'"value":"nan"' in fields[b"event"]


def test_an_outcome_that_is_refused_for_good_is_told_as_a_loss() -> None:
    class Refusing:
        is_endless, unread, is_brief = True, 0, True
        sent: list[Event] = []

        def send(self, event: Event) -> None:
            if event.kind is EventKind.FINISHED:
                raise Refused("it has 9,000,000 bytes")
            self.sent.append(event)

    source = Refusing()
    tell(event(7, EventKind.FINISHED), source)  # type: ignore[arg-type]
    [lost] = source.sent
    assert (lost.kind, lost.seq) == (EventKind.LOST, 7)
    assert "9,000,000 bytes" in lost.payload["reason"]

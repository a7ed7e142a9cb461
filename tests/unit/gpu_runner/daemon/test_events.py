"""The upward door: what is sent, what is kept, and in which order."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import redis

from gpu_runner.daemon.events import EventStream, Reporter, Spool, report_or_keep
from gpu_runner.daemon.slot_state import SlotState
from gpu_runner.data import codec
from gpu_runner.data.event import EVENT_STREAM, Event, EventKind, JobKind
from tests.conftest import RedisServer
from tests.unit.gpu_runner.daemon.running import read_events


def event(seq: int, kind: EventKind = EventKind.STAGE) -> Event:
    payload = {"value": float("nan")}
    return Event(job=JobKind.CHECK, job_id="e1", attempt=1, seq=seq, kind=kind, payload=payload)


def test_an_entry_has_one_field_with_json(redis_url: str) -> None:
    connection = redis.Redis.from_url(redis_url)
    EventStream(connection).send(event(1))
    [(_, fields)] = connection.xrange(EVENT_STREAM)
    assert list(fields) == [b"event"]
    assert b'"seq":1' in fields[b"event"]
    assert b'"value":"nan"' in fields[b"event"]


def test_the_reporter_never_waits_and_keeps_the_last_word(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    redis_server.stop()
    connection = redis.Redis.from_url(redis_server.url)
    stream, spool = EventStream(connection), Spool(tmp_path / "spool")
    reporter = Reporter(stream, spool)
    began = time.monotonic()
    reporter.publish(event(1))
    reporter.publish(event(2, EventKind.FINISHED), keep=True)
    assert time.monotonic() - began < 5
    reporter.close(0.2)
    with pytest.raises(redis.RedisError):
        spool.flush(stream)
    redis_server.start()
    assert spool.flush(stream) == 1
    assert spool.flush(stream) == 0
    assert [found.seq for found in read_events(connection, "e1")] == [2]


def test_the_reporter_tries_again_until_redis_is_back(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    redis_server.stop()
    connection = redis.Redis.from_url(redis_server.url)
    reporter = Reporter(EventStream(connection), Spool(tmp_path / "spool"))
    for seq in (1, 2, 3):
        reporter.publish(event(seq), keep=seq == 3)
    time.sleep(0.3)
    redis_server.start()
    reporter.close(20)
    assert [found.seq for found in read_events(connection, "e1")] == [1, 2, 3]
    assert not list((tmp_path / "spool").iterdir())


def test_a_loss_comes_after_what_was_kept(redis_url: str, tmp_path: Path) -> None:
    connection = redis.Redis.from_url(redis_url)
    spool = Spool(tmp_path)
    spool.keep(event(4))
    report_or_keep(event(5, EventKind.LOST), EventStream(connection), spool)
    assert [found.seq for found in read_events(connection, "e1")] == [4, 5]


def test_a_broken_file_does_not_hold_up_the_others(redis_url: str, tmp_path: Path) -> None:
    connection = redis.Redis.from_url(redis_url)
    spool = Spool(tmp_path)
    (tmp_path / "0.json").write_text('{"evaluation_id":')
    spool.keep(event(1))
    assert spool.flush(EventStream(connection)) == 1
    assert (tmp_path / "0.unreadable").exists()


def test_what_an_earlier_version_has_kept_is_sent(redis_url: str, tmp_path: Path) -> None:
    connection = redis.Redis.from_url(redis_url)
    spool = Spool(tmp_path)
    document = codec.encode(event(7))
    document["evaluation_id"] = document.pop("job_id")
    del document["job"]
    (tmp_path / "0.json").write_text(json.dumps(document))
    assert spool.flush(EventStream(connection)) == 1
    [sent] = read_events(connection, "e1")
    assert (sent.job, sent.seq) == (None, 7)


def test_slot_state_counts_and_forgets() -> None:
    state = SlotState()
    assert not state.lost
    state.begin(JobKind.BASELINES, "evaluation-ü", 3)
    assert [state.next_seq(), state.next_seq()] == [1, 2]
    assert (state.job_id, state.attempt, state.lost) == ("evaluation-ü", 3, True)
    state.finish()
    assert (state.job, state.lost) == (JobKind.BASELINES, False)
    assert state.next_seq() == 3
    state.begin(JobKind.CHECK, "b", 1)
    assert (state.job, state.job_id) == (JobKind.CHECK, "b")
    assert (state.next_seq(), state.lost) == (1, True)
    state.clear()
    assert (state.job_id, state.attempt, state.lost) == ("", 0, False)

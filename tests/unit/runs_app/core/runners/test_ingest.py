"""Nothing that a runner says keeps the site from hearing the next one."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from unittest import mock

import pytest
from django.db import OperationalError
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import OutOfMemoryError

from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from runs_app.core.messaging import orders
from runs_app.core.messaging.stream import DEAD_LETTERS, GROUP, Entry, Streams
from runs_app.management.commands import ingest_events
from runs_app.models import RunnerToken
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]


def entry(**fields: str | bytes) -> Entry:
    """An entry of the stream of the token `test`."""
    encoded = {k.encode(): v.encode() if isinstance(v, str) else v for k, v in fields.items()}
    return Entry(make.make_runner_token(), b"1-0", encoded)


def streams(redis: Any) -> Streams:
    return Streams(redis, "me", lambda: list(RunnerToken.objects.all()))


class Ingest(ingest_events.Command):
    """Records single entries, and remembers what it set aside."""

    def __init__(self) -> None:
        super().__init__()
        self._failures = Counter()
        self.stream = mock.Mock(spec=Streams)

    def record(self, said: Entry) -> list[str]:
        """Reasons for which something was set aside so far."""
        self._record(self.stream, said)
        return [call.args[1] for call in self.stream.set_aside.call_args_list]


HEARTBEAT = json.dumps(codec.encode(make.make_heartbeat()))


def test_an_event_at_which_the_database_fails_again_and_again_is_set_aside() -> None:
    ingest, said = Ingest(), entry(event=HEARTBEAT)
    with mock.patch.object(ingest_events, "record_event", side_effect=OperationalError("too deep")):
        for _ in range(4):
            with pytest.raises(OperationalError):
                ingest.record(said)
        assert ingest.record(said) == ["the database rejected it: too deep"]


def test_an_event_waits_for_a_database_that_is_away() -> None:
    ingest, said = Ingest(), entry(event=HEARTBEAT)
    away = OperationalError("connection refused")
    with (
        mock.patch.object(ingest_events, "record_event", side_effect=away),
        mock.patch.object(ingest_events.connection, "cursor", side_effect=away),
    ):
        for _ in range(20):
            with pytest.raises(OperationalError):
                ingest.record(said)
    assert ingest.record(said) == []


@pytest.mark.parametrize(
    "reason",
    ["a\0b", "\ud800", "\x1b[2J", "one\nup | two", "x" * 100_000],
    ids=lambda text: repr(text[:9]),
)
def test_whatever_the_reason_an_entry_can_be_set_aside(reason: str, caplog: Any) -> None:
    redis = mock.MagicMock()
    streams(redis).set_aside(entry(event="x" * 1_000_000, other="y"), reason)
    [fields] = [call.args[1] for call in redis.xadd.call_args_list]
    assert fields[b"reason"].isprintable()
    assert len(fields[b"event"]) == 10_000
    assert b"other" not in fields
    [line] = caplog.messages
    assert line.isprintable()
    assert len(line) < 3000


def test_a_redis_that_is_full_gets_empty() -> None:
    """It takes no dead letter and no answer; what was read is forgotten all the same."""
    redis = mock.MagicMock()
    redis.xadd.side_effect = OutOfMemoryError("OOM command not allowed")
    streams(redis).set_aside(entry(event="x"), "no JSON")
    assert redis.pipeline().__enter__().xdel.called
    assert redis.xadd.call_args.args[0] == DEAD_LETTERS

    with mock.patch.object(orders, "connection") as connection:
        execute = connection().pipeline().__enter__().execute
        execute.side_effect = OutOfMemoryError("OOM command not allowed")
        orders.answer(make.make_runner_token(), "0" * 32, None)
        execute.side_effect = RedisAway("gone")
        with pytest.raises(RedisAway):
            orders.answer(make.make_runner_token(), "0" * 32, None)


def test_a_group_that_is_there_is_not_made_again() -> None:
    """A Redis that is full would refuse to."""
    make.make_runner_token()
    redis = mock.MagicMock()
    redis.xinfo_groups.return_value = [{"name": GROUP.encode()}]
    streams(redis).read(1)
    assert not redis.xgroup_create.called


def test_while_one_says_too_much_others_are_read_as_often() -> None:
    token = make.make_runner_token()
    other = make.make_runner_token(name="other")
    redis = mock.MagicMock()
    key, lone = (f"kbench:{each.mailbox}:events".encode() for each in (token, other))

    def read(*_: Any, count: int, **__: Any) -> Any:
        return {key: [(b"1-0", {})] * count, lone: [(b"1-0", {})]}

    redis.xreadgroup.side_effect = read
    sizes = redis.pipeline().__enter__().execute
    sizes.return_value = [1000, None]
    reader = streams(redis)
    reader.read(1)
    assert reader.behind == {token}
    assert len(reader.read(1)) == 101
    sizes.return_value = [20 << 20, 1000]
    assert len(reader.read(1)) == 2


def test_only_an_end_may_be_long() -> None:
    evaluation = make.make_evaluation()
    long = {"detail": "x" * 70_000}
    ends = make.make_event(evaluation, kind="finished", payload=long)
    stage = make.make_event(evaluation, kind="stage", payload=long)
    assert entry(event=json.dumps(codec.encode(ends))).said()
    with pytest.raises(DataError, match="is larger than 64 KiB"):
        entry(event=json.dumps(codec.encode(stage))).said()
    with pytest.raises(DataError, match="is larger than 8 MiB"):
        entry(event=b" " * (17 << 20)).said()

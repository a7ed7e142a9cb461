"""What runners of other hosts are answered, request by request, also while they wait for a job."""

from __future__ import annotations

import asyncio
import json
import time
from ipaddress import ip_network
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.db import OperationalError
from redis import Redis

from gpu_runner.daemon.sources import https_source
from gpu_runner.data import codec, mailbox
from gpu_runner.data.order import Order, Word
from kbench_web import gateway
from runs_app.core.checks.services import request_check
from runs_app.core.messaging import broadcast, orders
from runs_app.core.runners.tokens import revoke
from runs_app.models import Runner, RunnerToken
from tests import factories as make
from tests.unit.kbench_web.asking import TEXT, answer_of, ask_of, begin, post

pytestmark = pytest.mark.django_db(transaction=True)


def heartbeat() -> dict[str, Any]:
    document: dict[str, Any] = codec.encode(make.make_heartbeat())
    return document


async def test_who_is_not_known_gets_nothing(lab_runner: Runner) -> None:
    for path in ("take", "events", "word"):
        wrong = (None, "", "kbr_unknown", TEXT[:-1], f"{TEXT}x", lab_runner.token.digest)
        for token in wrong:
            answer = await post(path, ask_of(lab_runner), token)
            assert (answer.status, bool(answer.document["reason"])) == (401, True), (path, token)
    assert not orders.connection().keys("kbench:*")
    word = {"runner": "gpu-1"}
    for scheme, status in (("Basic ", 401), ("bearer  ", 200)):
        header = [(b"authorization", f"{scheme}{TEXT} ".encode())]
        assert (await post("word", word, None, headers=header)).status == status


async def test_a_revoked_token_gets_nothing(lab_runner: Runner) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    await sync_to_async(RunnerToken.objects.update)(revoked_at=make.NOW)
    for path, document in (
        ("take", ask_of(lab_runner)),
        ("events", {"events": [heartbeat()]}),
        ("word", {"runner": "gpu-1"}),
    ):
        assert (await post(path, document)).status == 401
    await sync_to_async(evaluation.refresh_from_db)()
    assert evaluation.status == "QUEUED"


async def test_runners_post_what_is_answered_here(lab_runner: Runner) -> None:
    for path in (https_source.TAKE, https_source.EVENTS, https_source.WORD):
        assert (await post(path, [])).status == 422
    assert https_source._TAKE_S > gateway.LONGEST_S
    for path in ("", "jobs", "take/", "take/1", "../../queue/"):
        answer = await post(path, {})
        assert answer.status == 404
        assert "take, events and word" in answer.document["reason"]
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        assert (await post("word", {"runner": "gpu-1"}, method=method)).status == 405
    asked = begin("", b"", path="/runner/v2/take", method="GET")
    assert (await asked.receive_output(60))["status"] == 404
    body = (await asked.receive_output(60))["body"]
    assert b"<html" in body or b"not found" in body.lower()  # that address is the site's


async def test_what_is_no_json_or_too_much_is_refused(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'{"events": NaN}'):
        answer = await post("events", body)
        assert (answer.status, answer.document["reason"]) == (400, "the body is not JSON")
    for path in ("take", "word"):  # short by nature, so not read for long
        answer = await post(path, b'"' + b"x" * (64 << 10) + b'"')
        assert (answer.status, "64 KiB" in answer.document["reason"]) == (413, True)
    monkeypatch.setattr(gateway, "MOST_BYTES", 1 << 20)
    asked = begin("events", None)
    for _ in range(3):
        await asked.send_input({"type": "http.request", "body": b" " * 400_000, "more_body": True})
    answer = await answer_of(asked)  # more is announced, and never read
    assert (answer.status, "1024 KiB" in answer.document["reason"]) == (413, True)


async def test_what_cannot_be_is_refused_with_its_field(
    lab_runner: Runner, mailboxes: Redis
) -> None:
    cases: tuple[tuple[str, Any, str], ...] = (
        ("take", [], ""),
        ("take", {"ticket": "1"}, "ticket"),
        ("take", {"urgencies": ["soon"]}, "urgencies"),
        ("take", {"runner": "../x"}, "runner"),
        ("take", {"job": "evaluation-x-1"}, "job"),  # the site says which job is next
        ("events", [], "events"),
        ("events", {"events": {}}, "events"),
        ("events", {"events": [{}]}, "events.0"),
        ("events", {"events": [heartbeat(), {"kind": "lunch"}]}, "events.1"),
        ("events", {"events": [None] * 501}, "events"),
        ("word", [], "runner"),
        ("word", {"runner": 7}, "runner"),
        ("word", {"runner": ""}, "runner"),
        ("word", {"runner": "../x"}, "runner"),
    )
    for path, document, field in cases:
        if path == "take" and document:
            document = ask_of(lab_runner) | document  # noqa: PLW2901
        answer = await post(path, document)
        assert answer.status == 422
        assert answer.document["field"].startswith(field)
        assert answer.document["reason"]
    assert not mailboxes.exists(mailbox.events_key(lab_runner.token.mailbox))


async def test_events_land_in_the_tokens_own_stream(lab_runner: Runner, mailboxes: Redis) -> None:
    await sync_to_async(make.make_runner_token)(name="other")
    evaluation = await sync_to_async(make.make_evaluation)()
    events = [heartbeat(), codec.encode(make.make_event(evaluation))]
    answer = await post("events", {"events": events})
    assert (answer.status, answer.document) == (204, None)
    key = mailbox.events_key(lab_runner.token.mailbox)
    kept = [json.loads(fields[b"event"]) for _, fields in mailboxes.xrange(key)]
    assert kept == events
    assert [found.decode() for found in mailboxes.keys("kbench:*:events")] == [key]
    assert (await post("events", {"events": []})).status == 204
    assert mailboxes.xlen(key) == 2


async def test_a_word_says_what_is_wanted_of_ones_own_runner(lab_runner: Runner) -> None:
    assert (await post("word", {"runner": "gpu-1"})).document == codec.encode(Word())
    await sync_to_async(Runner.objects.update)(
        wanted="drain", wanted_reason="fan", current=["evaluation-x-1"]
    )
    answer = await post("word", {"runner": "gpu-1"})
    assert answer.status == 200
    word = codec.decode(Word, answer.document)
    assert word == Word(hold="by an admin: fan", dropped=("evaluation-x-1",))
    other = await sync_to_async(make.make_runner)(name="gpu-9", wanted="drain", wanted_reason="x")
    for name in ("gpu-9", other.name, "lab.gpu-1"):
        assert (await post("word", {"runner": name})).document == {}


async def test_an_ask_with_another_tokens_runner_gets_nothing(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "LONGEST_S", 0.1)
    other = await sync_to_async(make.make_runner)(name="gpu-9")
    await sync_to_async(make.make_evaluation)()
    assert (await post("take", ask_of(other))).status == 204


async def test_without_redis_events_are_to_come_again_and_jobs_are_handed_over(
    lab_runner: Runner, settings: Any
) -> None:
    settings.RUNNERS_REDIS_URL = "redis://127.0.0.1:1/0"
    answer = await post("events", {"events": [heartbeat()]})
    assert (answer.status, int(answer.headers["retry-after"]) > 0) == (503, True)
    evaluation = await sync_to_async(make.make_evaluation)()
    answer = await post("take", ask_of(lab_runner))
    assert (answer.status, answer.document["job_id"]) == (200, str(evaluation.pk))


async def test_without_the_database_all_is_to_come_again(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection was closed")

    for path, name in (("take", "hand_over"), ("word", "_word_to"), ("word", "find_token")):
        monkeypatch.setattr(gateway, name, gone)
        answer = await post(path, ask_of(lab_runner))
        assert (answer.status, "retry-after" in answer.headers) == (503, True)
        assert "connection was closed" not in str(answer.document)


async def test_a_token_that_others_could_read_is_refused(lab_runner: Runner, settings: Any) -> None:
    settings.TRUSTED_PROXIES = [ip_network("10.0.0.0/8")]
    for scheme, peer, forwarded, status in (
        ("https", "9.9.9.9", None, 200),
        ("http", "9.9.9.9", None, 403),
        ("http", "9.9.9.9", b"https", 403),  # anybody can say so
        ("http", "10.0.0.1", b"https", 200),
        ("http", "10.0.0.1", b"http", 403),
        ("https", "10.0.0.1", b"http", 403),
        ("http", "10.0.0.1", None, 403),
    ):
        headers = [(b"x-forwarded-proto", forwarded)] if forwarded else []
        options: dict[str, Any] = {"scheme": scheme, "client": [peer, 1], "headers": headers}
        settings.SECURE_SSL_REDIRECT = True
        answer = await post("word", {"runner": "gpu-1"}, **options)
        assert answer.status == status
        if status == 403:
            assert "ask an admin to replace it" in answer.document["reason"]
        settings.SECURE_SSL_REDIRECT = False  # a site of one machine, or of a lab
        assert (await post("word", {"runner": "gpu-1"}, **options)).status == 200


async def test_a_request_that_breaks_off_is_none(lab_runner: Runner, mailboxes: Redis) -> None:
    asked = begin("events", None)
    await asked.send_input({"type": "http.request", "body": b'{"events": [', "more_body": True})
    await asked.send_input({"type": "http.disconnect"})
    assert (await answer_of(asked)).status == 400
    assert not mailboxes.exists(mailbox.events_key(lab_runner.token.mailbox))


async def test_of_large_bodies_of_a_token_one_is_read_at_a_time(
    lab_runner: Runner, mailboxes: Redis
) -> None:
    first, second = begin("events", None), begin("events", b'{"events": []}')
    await first.send_input({"type": "http.request", "body": b'{"eve', "more_body": True})
    while not any(each.locked() for each in gateway._large.values()):
        await asyncio.sleep(0.01)
    assert await second.receive_nothing(timeout=0.3, interval=0.05)
    length = [(b"content-length", b"14")]
    assert (await post("events", b'{"events": []}', headers=length)).status == 204  # a small one
    await first.send_input({"type": "http.request", "body": b'nts": []}', "more_body": False})
    for asked in (first, second):
        assert (await answer_of(asked)).status == 204


async def test_what_nobody_has_read_yet_is_to_come_again(
    lab_runner: Runner, mailboxes: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_MOST_UNREAD", 100)
    assert (await post("events", {"events": [heartbeat()]})).status == 204
    answer = await post("events", {"events": [heartbeat()]})
    assert answer.status == 503
    assert "retry-after" in answer.headers
    assert mailboxes.xlen(mailbox.events_key(lab_runner.token.mailbox)) == 1


QUIET_S = 0.2


async def test_a_job_that_waits_is_handed_over_at_once(lab_runner: Runner) -> None:
    evaluation = await sync_to_async(make.make_evaluation)()
    answer = await post("take", ask_of(lab_runner, ticket="0" * 32))
    assert answer.status == 200
    order = codec.decode(Order, answer.document)
    assert (order.job_id, order.attempt) == (str(evaluation.pk), 1)
    await sync_to_async(evaluation.refresh_from_db)()
    assert (evaluation.status, evaluation.runner_id) == ("RUNNING", lab_runner.pk)
    again = await post("take", ask_of(lab_runner, ticket="0" * 32))
    assert again.document == answer.document  # the first answer was lost on its way


async def begun(lab_runner: Runner, **ask: Any) -> ApplicationCommunicator:
    """An ask that waits."""
    asked = begin("take", json.dumps(ask_of(lab_runner, **ask)).encode())
    assert await asked.receive_nothing(timeout=QUIET_S, interval=0.05)
    return asked


@pytest.mark.parametrize("what", ["an evaluation", "a private one", "a check"])
async def test_it_waits_and_answers_as_soon_as_one_is_queued(lab_runner: Runner, what: str) -> None:
    await sync_to_async(RunnerToken.objects.update)(trusted=True)
    version = await sync_to_async(make.make_task_version)()
    admin = await sync_to_async(make.make_admin)()
    asked = await begun(lab_runner)
    if what == "a check":
        job: Any = await sync_to_async(request_check)(
            version=version, device=lab_runner.device, user=admin, now=make.NOW
        )
    else:
        job = await sync_to_async(make.make_evaluation)(private=what == "a private one")
    began = time.monotonic()
    answer = await answer_of(asked)
    assert time.monotonic() - began < gateway._LOOK_S / 2
    assert codec.decode(Order, answer.document).job_id == str(job.pk)


async def test_nothing_comes_for_long_and_it_says_so(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "LONGEST_S", 0.3)
    began = time.monotonic()
    answer = await post("take", ask_of(lab_runner))
    assert (answer.status, answer.document) == (204, None)
    assert time.monotonic() - began >= 0.3
    assert not gateway.hub()._watchers.get("queue")  # nobody listens to it afterwards


async def test_without_a_message_it_looks_now_and_then(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_LOOK_S", 0.1)
    asked = await begun(lab_runner)
    with mock.patch.object(broadcast, "_send"):
        await sync_to_async(make.make_evaluation)()
    assert (await answer_of(asked)).status == 200


async def test_a_runner_that_goes_away_gets_no_job(lab_runner: Runner) -> None:
    asked = await begun(lab_runner)
    await asked.send_input({"type": "http.disconnect"})
    await asyncio.sleep(0.2)
    evaluation = await sync_to_async(make.make_evaluation)()
    await asyncio.sleep(0.3)
    await sync_to_async(evaluation.refresh_from_db)()
    assert evaluation.status == "QUEUED"
    assert (await answer_of(asked)).status == 204


async def test_who_waits_at_once_gets_one_job_each(lab_runner: Runner) -> None:
    other = await sync_to_async(make.make_runner)(token=lab_runner.token, name="gpu-2")
    waiting = [await begun(each) for each in (lab_runner, other)]
    version = await sync_to_async(make.make_task_version)()
    found = set()
    for number, _ in enumerate(waiting):
        row = await sync_to_async(make.make_evaluation)(
            task_version=version, source=f"{make.SOURCE}// {number}"
        )
        found.add(str(row.pk))
    answers = [await answer_of(each) for each in waiting]
    assert {answer.document["job_id"] for answer in answers} == found


async def test_a_token_that_is_revoked_meanwhile_is_told_at_once(lab_runner: Runner) -> None:
    asked = await begun(lab_runner)
    admin = await sync_to_async(make.make_admin)()
    await sync_to_async(revoke)(token=lab_runner.token, reason="it lies", user=admin, now=make.NOW)
    await sync_to_async(make.make_evaluation)()
    assert (await answer_of(asked)).status == 401


async def test_a_token_has_so_many_asks_open(
    lab_runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_MOST_ASKS", 2)
    waiting = [await begun(lab_runner) for _ in range(2)]
    answer = await post("take", ask_of(lab_runner))
    assert answer.status == 429
    for asked in waiting:
        await asked.send_input({"type": "http.disconnect"})
        assert (await answer_of(asked)).status == 204
    await sync_to_async(make.make_evaluation)()
    assert (await post("take", ask_of(lab_runner))).status == 200

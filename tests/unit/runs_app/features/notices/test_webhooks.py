"""Webhooks are signed, sent again, and never reach an address that is not public."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

import httpcore2
import pytest
from django.test import Client

from runs_app.core.errors import QuotaExceeded, SubmissionError
from runs_app.features.notices import addresses, delivery, services
from runs_app.features.notices.addresses import (
    NotPublicError,
    PublicBackend,
    is_public,
    public_address,
)
from runs_app.features.notices.models import Delivery, NoticeKind, Webhook
from tests import factories as make

PUBLIC = "93.184.216.34"


def test_it_is_not_public() -> None:
    for address in (
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1",
        "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::",
        "2001:db8::1", "localhost", "", "127.1",
    ):  # fmt: skip
        assert not is_public(address), address
        with pytest.raises(NotPublicError):
            public_address("host.example", 443, lambda host, port, it=address: [PUBLIC, it])


def test_a_bad_address_says_why() -> None:
    assert all(map(is_public, (PUBLIC, "8.8.8.8", "2606:4700::1111")))
    for url, words in (
        ("ftp://a.example/", "must begin"),
        ("https:///x", "must begin"),
        ("https://me:secret@a.example/", "not contain a user name or password"),
        ("https://a.example:22/", "port"),
        ("https://a.example:99999/", "not a valid URL"),
        ("https://a.example/\r\nX: 1", "no spaces"),
        ("https://a.example/" + "x" * 500, "at most 500"),
    ):
        assert words in addresses.url_refusal(url, lambda host, port: [PUBLIC])


def test_nobody_learns_which_names_there_are_in_the_sites_network() -> None:
    def missing(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    looks = (missing, lambda *_: [], lambda *_: ["10.0.0.7"], lambda *_: [PUBLIC, "10.0.0.7"])
    said = {addresses.url_refusal("https://db.internal/", look) for look in looks}
    assert len(said) == 1
    assert "all public" in said.pop()


def test_the_address_that_was_looked_up_is_the_one_that_is_connected_to() -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])  # rebinding: public first, then the host itself
    seen: list[str] = []

    def connect(address: str, *_: Any) -> Any:
        seen.append(address)
        raise httpcore2.ConnectError("no network here")

    backend = PublicBackend(lambda host, port: next(answers), connect)
    with pytest.raises(httpcore2.ConnectError, match="no network"):
        backend.connect_tcp("rebind.example", 443)
    with pytest.raises(NotPublicError):
        backend.connect_tcp("rebind.example", 443)
    assert seen == [PUBLIC]


class Listener(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent, and answers as it is told."""

    status: ClassVar[int] = 204
    received: ClassVar[list[tuple[dict[str, str], bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((dict(self.headers), body))
        self.send_response(self.status)
        if 300 <= self.status < 400:
            self.send_header("Location", "http://127.0.0.1:1/inner")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def listener() -> Iterator[int]:
    Listener.status, Listener.received = 204, []
    server = http.server.HTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def backend(port: int) -> PublicBackend:
    """Takes the host for public, and connects to the listener in its place."""
    inner = httpcore2.SyncBackend()
    return PublicBackend(
        lambda host, _: [PUBLIC],
        lambda address, _, *rest: inner.connect_tcp("127.0.0.1", port, *rest),
    )


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, db: None) -> Webhook:
    monkeypatch.setattr(services, "enqueue_delivery", lambda pk: True)
    ada = make.make_user()
    return services.add_webhook(
        user=ada, url="http://hooks.example/k", now=make.NOW, look_up=lambda h, p: [PUBLIC]
    )


def message(hook: Webhook) -> Delivery:
    services.tell([hook.user], NoticeKind.RUN, "It ended.", "/runs/", now=make.NOW)
    return Delivery.objects.filter(webhook=hook)[0]


def test_a_message_is_signed(hook: Webhook, listener: int) -> None:
    row = message(hook)
    assert delivery.deliver(delivery_id=row.pk, now=make.NOW, backend=backend(listener))
    [(headers, body)] = Listener.received
    said = dict(part.split("=") for part in headers["X-Kbench-Signature"].split(","))
    secret = services.secret_of(hook)
    signed = f"{said['t']}.".encode() + body
    assert said["v1"] == hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    document = json.loads(body)
    assert (document["id"], document["kind"], document["text"]) == (row.pk, "run", "It ended.")
    assert headers["Host"] == "hooks.example"
    row.refresh_from_db()
    assert (row.status, row.error) == (204, "")
    assert row.done_at == make.NOW
    assert hook.salt not in secret


@pytest.mark.parametrize("status", [302, 500])
def test_what_does_not_arrive_is_sent_again_and_given_up(
    hook: Webhook, listener: int, status: int
) -> None:
    Listener.status = status
    row = message(hook)
    now = make.NOW
    pauses = []
    for _ in range(delivery.TRIES):
        assert not delivery.deliver(delivery_id=row.pk, now=now, backend=backend(listener))
        assert not delivery.deliver(delivery_id=row.pk, now=now, backend=backend(listener))
        row.refresh_from_db()
        pauses.append(row.next_at - now)
        now = row.next_at
    assert pauses[:5] == [timedelta(seconds=30 * 4**n) for n in range(5)]
    assert row.done_at is not None
    assert f"status {status}" in row.error
    assert len(Listener.received) == delivery.TRIES  # and nothing at the redirect's target
    hook.refresh_from_db()
    assert hook.failures == 1


def test_an_inner_address_gets_nothing_and_one_that_never_answers_no_more(
    hook: Webhook, listener: int
) -> None:
    row = message(hook)
    inside = PublicBackend(lambda host, port: ["127.0.0.1"])
    assert not delivery.deliver(delivery_id=row.pk, now=make.NOW, backend=inside)
    row.refresh_from_db()
    assert row.error
    assert Listener.received == []
    Delivery.objects.all().delete()
    Webhook.objects.update(failures=19)
    row = message(hook)
    Delivery.objects.update(attempt=delivery.TRIES - 1)
    gone = PublicBackend(lambda host, port: [])
    delivery.deliver(delivery_id=row.pk, now=make.NOW, backend=gone)
    hook.refresh_from_db()
    assert "20 messages in a row" in hook.stopped_reason
    services.tell([hook.user], NoticeKind.RUN, "x", "/", now=make.NOW)
    assert Delivery.objects.count() == 1


def test_what_is_due_is_queued_and_what_is_old_goes(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[int] = []
    monkeypatch.setattr(services, "enqueue_delivery", lambda pk: queued.append(pk) or True)
    row = message(hook)
    assert delivery.look_after(now=make.later(60)) == 1
    assert queued == [row.pk]
    Delivery.objects.update(done_at=make.NOW)
    assert delivery.look_after(now=make.NOW + timedelta(days=31)) == 0
    assert not Delivery.objects.exists()


def test_the_page_refuses_and_shows_the_secret_once(
    hook: Webhook, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(hook.user)
    for url in ("", "nothing", "http://127.0.0.1/", "http://localhost:8000/", "http://[::1]/"):
        assert client.post("/notices/webhooks/", {"url": url}).status_code == 422, url
    assert Webhook.objects.count() == 1
    fields: dict[str, Any] = {"user": hook.user, "now": make.NOW}
    with pytest.raises(SubmissionError) as refusal:
        services.add_webhook(url="http://169.254.169.254/", **fields)
    assert refusal.value.field == "url"
    monkeypatch.setattr(services, "url_refusal", lambda url, look_up: "")
    text = client.post("/notices/webhooks/", {"url": "https://b.example/"}).content.decode()
    made = Webhook.objects.get(url="https://b.example/")
    assert services.secret_of(made) in text
    assert services.secret_of(made) not in client.get("/notices/settings/").content.decode()
    stranger = Client()
    stranger.force_login(make.make_user())
    for act in ("test", "delete"):
        assert stranger.post(f"/notices/webhooks/{made.pk}/{act}/").status_code == 404
    assert client.post(f"/notices/webhooks/{made.pk}/test/").status_code == 302
    assert Delivery.objects.filter(webhook=made).count() == 1
    client.post(f"/notices/webhooks/{made.pk}/delete/")
    for _ in range(4):
        services.add_webhook(url=hook.url, look_up=lambda h, p: [PUBLIC], **fields)
    with pytest.raises(QuotaExceeded):
        services.add_webhook(url=hook.url, **fields)
    assert Webhook.objects.count() == 5

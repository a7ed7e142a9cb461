"""The two doors of the site, as somebody uses them who writes whatever he likes."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import redis

from gpu_runner.data import codec, mailbox
from gpu_runner.data.order import Order
from gpu_runner.data.queue import Urgency
from tests.adversarial.compromised.contract import HTTPS, REDIS

_ANSWER_S = 20.0


class Door:
    """What both doors have in common: a host of its own, and what it says by itself."""

    kind: str

    def __init__(self, token: str, device: str, host: str = "host") -> None:
        """As a host of that token, for that device."""
        self.token, self.device, self.host = token, device, host
        self.boot_id = secrets.token_hex(8)
        self.last_order: Order | None = None

    def say(self, text: str) -> str:
        """Send the text as an event; the answer, if there is one."""
        raise NotImplementedError

    def ask(self, document: Mapping[str, Any], wait_s: float = _ANSWER_S) -> Order | None:
        """Send the document as an ask; the order, if one comes in time."""
        raise NotImplementedError

    def event(self, **fields: Any) -> str:
        """An event's JSON: fields of it, whatever they are."""
        document = {"job": None, "job_id": "", "attempt": 0, "seq": 0, "kind": "runner"}
        return json.dumps({**document, "payload": {}, **fields})

    def heartbeat(self, **state: Any) -> str:
        """A heartbeat's JSON."""
        fields: dict[str, Any] = {
            **{"name": self.host, "boot_id": self.boot_id, "device": self.device},
            **{"device_kind": "cpu", "device_name": "A device", "state": "ready", "reason": ""},
            **{"jail": True, "current": [], "builds": 1, "version": "0.1.0", "at": time.time()},
        }
        return self.event(payload={**fields, **state})

    def about(self, order: Order, kind: str, seq: int, payload: Any = None, **fields: Any) -> str:
        """JSON of an event of an order's job."""
        job = {"job": order.kind, "job_id": order.job_id, "attempt": order.attempt}
        return self.event(**{**job, "seq": seq, "kind": kind, "payload": payload or {}, **fields})

    def wish(self, **fields: Any) -> dict[str, Any]:
        """An ask, as a document."""
        return {
            **{"runner": self.host, "boot_id": self.boot_id, "device": self.device},
            **{"urgencies": [each.value for each in Urgency], "ticket": secrets.token_hex(16)},
            **fields,
        }

    def take(self, **fields: Any) -> Order:
        """The next job."""
        self.say(self.heartbeat())
        for _ in range(40):
            if order := self.ask(self.wish(**fields)):
                self.last_order = order
                return order
            time.sleep(0.25)  # the heartbeat is on its way
        raise AssertionError(f"no job for {self.token} through {self.kind}")


class RedisDoor(Door):
    """A login of the runners' Redis."""

    kind = REDIS

    def __init__(self, url: str, token: str, device: str, host: str = "host") -> None:
        """With the address that `manage.py runner_login` prints."""
        super().__init__(token, device, host)
        self.url = url
        self.redis: Any = redis.Redis.from_url(url, socket_timeout=60, socket_connect_timeout=5)
        self.mailbox = self.redis.connection_pool.connection_kwargs["username"]

    def say(self, text: str) -> str:
        """Append to the login's stream."""
        return str(self.redis.xadd(mailbox.events_key(self.mailbox), {mailbox.EVENT: text}))

    def ask(self, document: Mapping[str, Any], wait_s: float = _ANSWER_S) -> Order | None:
        """Append an ask, and wait for what is answered to its ticket."""
        text = json.dumps(document)
        self.redis.xadd(mailbox.events_key(self.mailbox), {mailbox.ASK: text})
        key = mailbox.answer_key(self.mailbox, str(document["ticket"]))
        found = self.redis.blpop([key], wait_s)
        said = json.loads(found[1]) if found else None
        return codec.decode(Order, said, "order") if said else None


class HttpsDoor(Door):
    """A runner's token, shown over HTTP."""

    kind = HTTPS

    def __init__(self, site: str, text: str, token: str, device: str, host: str = "host") -> None:
        """At the site's address."""
        super().__init__(token, device, host)
        self.site, self.text = site, text
        self.http = httpx2.Client(
            base_url=f"{site}/runner/v1/", headers={"Authorization": f"Bearer {text}"}, timeout=30
        )

    def post(self, path: str, body: str | bytes, timeout_s: float = 30) -> httpx2.Response:
        """Whatever the site answers to a body."""
        return self.http.post(path, content=body, timeout=timeout_s)

    def say(self, text: str) -> str:
        """Post one event."""
        answer = self.post("events", f'{{"events": [{text}]}}')
        return f"{answer.status_code} {answer.text[:200]}".strip()

    def ask(self, document: Mapping[str, Any], wait_s: float = 2.0) -> Order | None:
        """Post an ask; waiting for a job that may never come is given up early."""
        with contextlib.suppress(httpx2.TimeoutException):
            answer = self.post("take", json.dumps(document), timeout_s=min(wait_s, 2.0))
            if answer.status_code == 200:
                return codec.decode(Order, answer.json(), "order")
        return None

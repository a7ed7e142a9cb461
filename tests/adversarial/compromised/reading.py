"""Attacks on what others keep secret: kernels, hidden workloads, messages, keys."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from typing import Any

import redis

from tests.adversarial.compromised.contract import (
    CATALOGUE,
    HTTPS,
    REDIS,
    Attack,
    NotStopped,
    attack,
    denied,
    require,
)
from tests.adversarial.compromised.doors import Door, HttpsDoor, RedisDoor
from tests.adversarial.compromised.world import FOREIGN, OWN, World

_ACL = "its login knows three commands, for its own keys"
_READS = {
    "a waiting job's data": "HGETALL rq:job:x-evaluation-{job}-1",
    "a queue of another device": f"LRANGE rq:queue:device-{FOREIGN} 0 -1",
    "a name of another device": f"BLPOP rq:queue:device-{FOREIGN} 1",
    "a queue of its own device": f"LRANGE rq:queue:device-{OWN} 0 -1",
    "another mailbox": "XRANGE kbench:{other}:events - +",
    "its own mailbox": "XRANGE kbench:{own}:events - +",
    "another one's answers": "BLPOP kbench:{other}:answer:0 1",
    "the site's words to others": "GET kbench:{other}:word:host",
    "dead letters": "XRANGE kbench:dead-letters - +",
    "all keys": "KEYS *",
    "all keys by and by": "SCAN 0",
    "all commands of others": "MONITOR",
    "all messages": "PSUBSCRIBE *",
    "the list of clients": "CLIENT LIST",
    "the list of logins": "ACL LIST",
    "the server's settings": "CONFIG GET *",
    "the server's facts": "INFO",
    "a sorted look at other keys": "SORT rq:queue:device-{own} BY nosort GET rq:job:*",
    "a dump of a key": "DUMP kbench:dead-letters",
    "a stream's group": "XREADGROUP GROUP site me STREAMS kbench:{other}:events >",
}
_WRITES = {
    "everything": "FLUSHALL",
    "a database": "FLUSHDB",
    "the server": "SHUTDOWN NOSAVE",
    "the server's settings": "CONFIG SET maxmemory 1",
    "the server's files": "CONFIG SET dir /tmp",
    "its own login": "ACL SETUSER {own} +@all ~*",
    "other keys": "DEL rq:queue:device-{own}",
    "other clients": "CLIENT KILL TYPE normal",
    "all clients for a while": "CLIENT PAUSE 60000",
    "a script": "EVAL return(1) 0",
    "a function": "FUNCTION LOAD x",
    "a module": "MODULE LOAD /tmp/x.so",
    "pub/sub to workers": "PUBLISH rq:pubsub:worker {{}}",
    "a pickle in the cache": "SET kbench:1:estimates:cpu x",
    "a job of the site's workers": "RPUSH rq:queue:runs x",
    "a call of the site's workers": "RPUSH rq:queue:calls x",
    "a job with webhooks": "HSET rq:job:x webhooks x",
    "a name in another device's queue": f"RPUSH rq:queue:device-{FOREIGN} x",
    "a name in its own device's queue": f"RPUSH rq:queue:device-{OWN} x",
    "a stream in place of its device's queue": f"XADD rq:queue:device-{OWN}-audits * a b",
    "a stream in place of an answer": "XADD kbench:{own}:answer:" + "0" * 32 + " * a b",
    "another mailbox": "XADD kbench:{other}:events * event x",
    "a group of its own stream": "XGROUP DESTROY kbench:{own}:events site",
    "its own stream": "DEL kbench:{own}:events",
    "a word to itself": "SET kbench:{own}:word:host x",
    "steering of others": "SET kbench:{other}:word:host x",
    "replication": "REPLICAOF 127.0.0.1 1",
    "the log": "DEBUG SLEEP 10",
    "a list moved elsewhere": f"BLMOVE rq:queue:device-{OWN} kbench:{{own}}:answer:0 LEFT LEFT 1",
}


def _command(what: str, text: str, tries: str) -> Attack:
    def run(w: World, door: Door) -> str:
        boxes = w.facts["mailboxes"]
        names = {"own": boxes[door.token], "other": boxes["honest"], "job": w.facts["foreign"][0]}
        words = [word.format(**names) for word in text.split(" ")]
        fresh: Any = redis.Redis.from_url(door.url, socket_timeout=5)  # type: ignore[attr-defined]
        with fresh as client:
            answer = denied(client.execute_command, *words)
        refused = "permission" in answer or "not allowed" in answer
        require(refused, f"it was not refused, but {answer}")
        return answer

    return Attack(f"{tries} {what}", f"{tries} {what}: `{text}`.", _ACL, (REDIS,), run)


CATALOGUE.extend(_command(what, text, "read") for what, text in _READS.items())
CATALOGUE.extend(_command(what, text, "write") for what, text in _WRITES.items())


@attack(REDIS, by="the site's own Redis knows no login of runners")
def reach_the_sites_own_redis(w: World, door: Door) -> str:
    """Log in there without a password, as `default`, with the runner's password."""
    port = w.port("redis")
    assert isinstance(door, RedisDoor)
    password = door.redis.connection_pool.connection_kwargs["password"]
    answers = set()
    for user, secret in ((None, None), ("default", ""), (door.token, password), ("site", password)):
        client = redis.Redis(
            port=port, username=user, password=secret, socket_timeout=5, retry=None
        )
        answers.add(denied(client.get, "kbench:1:estimates:cpu"))
    return "; ".join(sorted(answers))


@attack(REDIS, by="without a password there is nothing")
def reach_the_runners_redis_without_a_password(w: World, door: Door) -> str:
    """What any user of the host, or a jailed kernel that got a network, could try."""
    answers = set()
    for user, secret in ((None, None), ("default", ""), ("site", ""), ("site", "site")):
        client = redis.Redis(
            port=w.port("redis-runners"), username=user, password=secret, retry=None
        )
        answers.add(denied(client.ping))
    return "; ".join(sorted(answers))


@attack(REDIS, HTTPS, by="a job is handed to a runner of its device alone")
def ask_for_a_job_of_another_device(w: World, door: Door) -> str:
    """Ask by name for a private kernel that waits for another device."""
    [job_id, *_] = w.facts["foreign"]
    for device in (OWN, FOREIGN):
        found = door.ask(door.wish(job=f"evaluation-{job_id}-1", device=device))
        require(found is None or found.job_id != job_id, "it got the job, with its source")
    return "no order"


@attack(REDIS, HTTPS, by="a job is handed over once")
def ask_for_a_job_of_another_runner(w: World, door: Door) -> str:
    """Ask by name for the job that another runner works at, also with that one's boot."""
    order = w.victim()
    for wish in ({}, {"boot_id": w.honest.boot_id}, {"runner": "honest-host"}):
        found = door.ask(door.wish(job=str(order.name), **wish))
        require(found is None or found.job_id != order.job_id, "it got the job, with its source")
    return "no order"


@attack(HTTPS, by="over HTTPS the site says which job is next")
def ask_for_a_chosen_job(w: World, door: Door) -> str:
    """Ask by name for a job of the own device that is not the next: a rival's, say."""
    [(key,)] = w.rows(
        "SELECT id FROM runs_app_evaluation WHERE status = 'QUEUED' AND device_id = 'shared-gpu'"
        " AND mode = 'ranked' ORDER BY queued_at DESC LIMIT 1"
    )
    job_id = str(uuid.UUID(key))
    attempt = w.job(job_id)["attempt"]
    door.say(door.heartbeat())
    w.heard(door)
    found = door.ask(door.wish(job=f"evaluation-{job_id}-{attempt}"))
    require(found is None or found.job_id != job_id, "it got the very job that it wanted")
    return "not that one"


@attack(HTTPS, by="a runner's token is not an API token")
def read_hidden_workloads_over_the_api(w: World, door: Door) -> str:
    """Read pages and the API with a runner's token: admin pages, hidden workloads, sources."""
    assert isinstance(door, HttpsDoor)
    seen = []
    for path in ("/api/v1/tasks/scale", "/api/v1/submissions", "/operate/", "/api/v1/me"):
        request = urllib.request.Request(w.site.url + path)
        request.add_header("Authorization", f"Bearer {door.text}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text, status = answer.read().decode(), answer.status
        except urllib.error.HTTPError as error:
            text, status = error.read().decode(errors="replace"), error.code
        for secret in ("secret_odd_size", "1777", "nobody but alice"):
            require(secret not in text, f"{path} tells {secret}")
        seen.append(f"{path} {status}")
    return ", ".join(seen)


@attack(HTTPS, by="a ticket is of one runner")
def use_another_runners_ticket(w: World, door: Door) -> str:
    """Ask with the ticket of an honest runner, to be sent its order again."""
    ticket = "ab" * 16
    order = w.honest.take(ticket=ticket)
    found = door.ask(door.wish(ticket=ticket))
    require(found is None or found.job_id != order.job_id, "it got that runner's order")
    return "another job, or none"


@attack(HTTPS, by="words are told of the own runners")
def read_words_to_others(w: World, door: Door) -> str:
    """Ask what the site wants of runners that belong to others."""
    assert isinstance(door, HttpsDoor)
    answers = []
    for name in ("honest.honest-hosts", "../honest-host", "%", "\0", "\ud800", "x" * 1000):
        answer = door.post("word", json.dumps({"runner": name}))
        if answer.status_code >= 500 or (answer.text not in ("{}", "") and answer.is_success):
            raise NotStopped(f"{name[:20]!r}: {answer.status_code} {answer.text[:100]}")
        answers.append(str(answer.status_code))
    return " ".join(answers)

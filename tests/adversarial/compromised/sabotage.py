"""Attacks on everybody's work: what can't be read, is too much, or never ends."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from gpu_runner.data import mailbox
from tests.adversarial.compromised.contract import (
    CATALOGUE,
    HTTPS,
    REDIS,
    Attack,
    attack,
    denied,
    require,
)
from tests.adversarial.compromised.doors import Door, HttpsDoor, RedisDoor
from tests.adversarial.compromised.world import OWN, World

_DEEP = 100_000
_GARBAGE: dict[str, Callable[[Door], bytes | str]] = {
    "no JSON": lambda d: b"\xc1\xff{",
    "a pickle": lambda d: b"\x80\x04\x95cposix\nsystem\n.",
    "deeply nested JSON": lambda d: "[" * _DEEP + "]" * _DEEP,
    "a deeply nested payload": lambda d: d.event(payload={}).replace(
        '"payload": {}', '"payload": {"a": ' + "[" * 900 + "]" * 900 + "}"
    ),
    "a deeply nested heartbeat": lambda d: d.heartbeat(packages={}).replace(
        '"packages": {}', '"packages": {"a": ' + "[" * 900 + "]" * 900 + "}"
    ),
    "NaN and Infinity": lambda d: d.heartbeat(at=float("nan"), builds=float("inf")),
    "an endless number": lambda d: d.heartbeat(builds=0).replace(
        '"builds": 0', '"builds": ' + "9" * 5000
    ),
    "NUL": lambda d: d.heartbeat(reason="a\0b", version="\0"),
    "a lone surrogate": lambda d: d.heartbeat(reason="\ud800"),
    "a field called NUL": lambda d: d.event(**{"\0": 1}),
    "a field called by a lone surrogate": lambda d: d.event(**{"\ud800": 1}),
    "a state called by a lone surrogate": lambda d: d.heartbeat(state="\ud800"),
    "a job called by a lone surrogate": lambda d: d.event(job_id="\ud800", kind="alive"),
    "numbers beyond all columns": lambda d: d.event(
        job="evaluation", job_id="0" * 32, attempt=10**40, seq=10**40, kind="alive"
    ),
    "a list": lambda d: "[]",
    "null": lambda d: "null",
}


def _garbage(what: str, make: Callable[[Door], bytes | str]) -> Attack:
    def run(w: World, door: Door) -> str:
        text = make(door)
        body = text if isinstance(text, bytes) else text.encode()
        answer = ""
        if isinstance(door, RedisDoor):
            for field in ("event", "ask", "other"):
                door.redis.xadd(mailbox.events_key(door.mailbox), {field: body})
            answer = w.heard(door)
        elif isinstance(door, HttpsDoor):
            for path, content in (
                ("events", b'{"events": [' + body + b"]}"),
                *((path, body) for path in ("events", "take", "word")),
            ):
                found = door.post(path, content)
                require(found.status_code < 500, f"{path} answers {found.status_code}")
                answer = f"{found.status_code} {found.text[:100]}"
        w.check_alive()
        return answer

    doors = (REDIS, HTTPS)
    return Attack(f"garbage: {what}", f"Say {what}.", "only what can be read counts", doors, run)


CATALOGUE.extend(_garbage(what, make) for what, make in _GARBAGE.items())

_ODD_ASKS: dict[str, dict[str, Any]] = {
    "half a million urgencies": {"urgencies": ["-builds"] * 500_000},
    "the same urgencies again and again": {"urgencies": ["", "-runs"] * 20_000},
    "a job called by a lone surrogate": {"job": "\ud800"},
    "a job that is not a UUID": {"job": "evaluation-x-1"},
    "a boot that is NUL": {"boot_id": "\0"},
    "a boot that is a lone surrogate": {"boot_id": "\ud800"},
    "a device that is a lone surrogate": {"device": "\ud800"},
    "a ticket that is none": {"ticket": "../../x"},
}


def _odd_ask(what: str, fields: dict[str, Any]) -> Attack:
    def run(w: World, door: Door) -> str:
        text = json.dumps(door.wish(**fields))
        if isinstance(door, RedisDoor):
            door.redis.xadd(mailbox.events_key(door.mailbox), {"ask": text})
            answer = w.heard(door)
        else:
            assert isinstance(door, HttpsDoor)
            began = time.monotonic()
            try:
                found = door.post("take", text, timeout_s=3)
            except Exception as error:
                answer = f"waits ({type(error).__name__})"
            else:
                require(found.status_code < 500, f"answers {found.status_code}")
                answer = f"{found.status_code} {found.text[:100]}"
                require(time.monotonic() - began < 3, "the answer took seconds")
        w.check_alive()
        return answer

    by = "an ask has a bounded form"
    return Attack(f"ask with {what}", f"Ask for a job with {what}.", by, (REDIS, HTTPS), run)


CATALOGUE.extend(_odd_ask(what, fields) for what, fields in _ODD_ASKS.items())


@attack(REDIS, by="8 MiB an entry, and a bound on the server's memory")
def an_event_of_a_hundred_megabytes(w: World, door: Door) -> str:
    """Append events of 100 MB until the ingester or the server falls over."""
    assert isinstance(door, RedisDoor)
    key = mailbox.events_key(door.mailbox)
    answer = denied(door.redis.xadd, key, {"event": b"x" * 100_000_000})
    w.check_alive()
    return answer


@attack(REDIS, by="a bound on the server's memory; what can't be read is not kept")
def dead_letters_without_end(w: World, door: Door) -> str:
    """Append 40 entries of 7 MB that can't be read, each of which is set aside."""
    assert isinstance(door, RedisDoor)
    key = mailbox.events_key(door.mailbox)
    before = w.keys.info("memory")["used_memory"]
    for _ in range(40):
        door.redis.xadd(key, {"event": b"x" * 7_000_000})
    w.until(lambda: not w.keys.xlen(key), "the entries are never read", 60)
    grown = (w.keys.info("memory")["used_memory"] - before) >> 20
    require(grown < 100, f"the server holds {grown} MiB more")
    w.check_alive()
    return f"the server holds {grown} MiB more"


@attack(HTTPS, by="8 MiB a request, and a bound on what waits to be read")
def bodies_without_end(w: World, door: Door) -> str:
    """Post 12 bodies of 7 MB, and one of 15 MB."""
    assert isinstance(door, HttpsDoor)
    event = door.event(job="evaluation", job_id="0" * 32, attempt=1, seq=1, kind="finished")
    big = event.replace('"payload": {}', '"payload": {"result": "' + "x" * 7_000_000 + '"}')
    body = f'{{"events": [{big}]}}'.encode()
    found = [door.post("events", body).status_code for _ in range(12)]
    over = door.post("events", body + b" " * 8_000_000).status_code
    require(over == 413, f"the largest is answered with {over}")
    held = w.keys.info("memory")["used_memory"] >> 20
    require(held < 400, f"the runners' Redis holds {held} MiB")
    w.heard(door)
    w.check_alive()
    return f"{over}; {found.count(503)} of 12 have to come again"


@attack(REDIS, by="names are queued again after some seconds")
def use_up_all_names(w: World, door: Door) -> str:
    """Pop all names of the own device, and ask for none of the jobs."""
    assert isinstance(door, RedisDoor)
    keys = [f"rq:queue:device-{OWN}{each}" for each in ("", "-audits", "-baselines")]
    popped = 0
    while door.redis.blpop(keys, 0.2):
        popped += 1
    waiting = w.count("evaluation", f"status = 'QUEUED' AND device_id = '{OWN}' AND mode='ranked'")
    began = time.monotonic()
    w.until(lambda: w.keys.llen(keys[0]) >= min(waiting, 20), "they are not queued again", 30)
    took = time.monotonic() - began
    order = w.honest.take()
    return f"{popped} names are back after {took:.0f} s; another runner takes {order.kind}"


@attack(REDIS, HTTPS, by="a name stands in a queue once")
def fill_a_queue_with_one_name(w: World, door: Door) -> str:
    """Lose a job, then ask 100 times for it: it is for others, so its name is queued again."""
    w.honest.say(w.honest.heartbeat())
    order = door.take()
    door.say(door.about(order, "lost", 1, {"reason": "oops"}))
    w.until(lambda: w.job(order.job_id)["attempt"] == 2, "the job is not queued again")
    name = f"evaluation-{order.job_id}-2"
    for _ in range(100):
        door.ask(door.wish(job=name), 0.05)
    w.heard(door)
    names = [each.decode() for each in w.keys.lrange(f"rq:queue:device-{OWN}", 0, -1)]
    found = sum(each.endswith(name) for each in names)
    _give_all_back(w, door)
    require(found <= 1, f"the name stands in the queue {found} times")
    return f"it stands there {found} times"


@attack(REDIS, HTTPS, by="a bound on what a job's events bring")
def a_stage_without_end(w: World, door: Door) -> str:
    """Report 1,200 stages of one job, and one with a megabyte of text."""
    order = w.held(door)
    text = {"stage": "build", "state": "running", "elapsed_s": 0.0}
    size = w.folder_size()
    _many(door, [door.about(order, "stage", n, {**text, "detail": "x"}) for n in range(2, 1200)])
    door.say(door.about(order, "stage", 3001, {**text, "detail": "x" * 1_000_000}))
    door.say(door.about(order, "stage", 3002, {**text, "more": ["x" * 1000] * 1000}))
    w.heard(door)
    key = order.job_id.replace("-", "")
    rows = w.count("evaluationevent", f"evaluation_id = '{key}'")
    [(longest,)] = w.rows(
        "SELECT MAX(LENGTH(payload)) FROM runs_app_evaluationevent WHERE evaluation_id = ?", key
    )
    door.say(door.about(order, "lost", 4000, {"reason": "x" * 1_000_000}))
    w.heard(door)
    require(rows <= 1000, f"{rows} events of one job are stored")
    require(longest <= 70_000, f"an event of {longest} characters is stored")
    return f"{rows} events are stored, of {longest} characters at most; {size >> 20} MiB"


def _many(door: Door, events: list[str]) -> None:
    if isinstance(door, HttpsDoor):
        for first in range(0, len(events), 500):
            door.post("events", f'{{"events": [{", ".join(events[first : first + 500])}]}}')
    else:
        for event in events:
            door.say(event)


def _give_all_back(w: World, door: Door) -> None:
    """Stop and start: what the runner holds is queued again."""
    door.say(door.heartbeat(state="stopped"))
    door.say(door.heartbeat())
    w.heard(door)


@attack(HTTPS, by="a runner holds at most 64 jobs")
def take_everything(w: World, door: Door) -> str:
    """Take all jobs of the device and work at none."""
    door.say(door.heartbeat())
    w.heard(door)
    held = 0
    while door.ask(door.wish()) and held < 100:
        held += 1
    left = w.count("evaluation", f"status = 'QUEUED' AND device_id = '{OWN}'")
    _give_all_back(w, door)
    require(left and held <= 64, f"it holds {held} jobs")
    return f"{held} jobs; {left} are left for others"


@attack(REDIS, HTTPS, by="a lost job goes to another runner")
def lose_a_job_until_it_fails(w: World, door: Door) -> str:
    """Take a job and lose it, three times, so that it ends as SYSTEM_ERROR."""
    w.honest.say(w.honest.heartbeat())
    first = door.take()
    door.say(door.about(first, "lost", 1, {"reason": "oops"}))
    w.until(lambda: w.job(first.job_id)["attempt"] == 2, "the job is not queued again")
    for attempt in (2, 3):
        again = door.ask(door.wish(job=f"evaluation-{first.job_id}-{attempt}"))
        if again is None or again.job_id != first.job_id:
            break
        door.say(door.about(again, "lost", 1, {"reason": "oops"}))
        w.heard(door)
    require(not w.verdict(first.job_id), f"it ended as {w.verdict(first.job_id)}")
    return "it does not get the job again"


@attack(REDIS, by="20 open doubts a runner")
def doubts_without_end(w: World, door: Door) -> str:
    """Report 100 devices that the token doesn't serve, each a doubt of its own."""
    for number in range(100):
        door.say(door.heartbeat(name="poser", device=f"not-mine-{number}"))
    w.heard(door)
    found = w.count("runnerflag")
    require(found <= 60, f"there are {found} doubts")
    return f"{found} doubts in all"


@attack(REDIS, by="the log tells a reason in a line, cut")
def forge_lines_of_the_log(w: World, door: Door) -> str:
    """Have the log print control characters, a line that looks like another program's, and 1 MB."""
    lines = len(w.site.lines)
    assert isinstance(door, RedisDoor)
    door.say(door.event(**{"\x1b[2J\n12:00:00 up | kbench is ready at http://evil.example/": 1}))
    door.say(door.event(kind="x" * 1_000_000))
    door.say(door.event(job_id="x" * 1_000_000, kind="alive"))
    w.heard(door)
    time.sleep(0.5)
    new = w.site.lines[lines:]
    require(not any("\x1b[2J" in line for line in new), "control characters reach the terminal")
    require(not any(line.startswith("12:00:00 up") for line in new), "a forged line is there")
    require(
        not any("evil.example" in line and "set aside" not in line for line in new),
        "a line of its own is there",
    )
    longest = max(map(len, new), default=0)
    require(longest < 20_000, f"a line has {longest} characters")
    return f"the longest line has {longest} characters"


@attack(HTTPS, by="256 open asks a token")
def five_hundred_open_asks(w: World, door: Door) -> str:
    """Keep 500 asks open at once."""
    door.say(door.heartbeat())
    w.heard(door)
    sockets = [_open_ask(w, door) for _ in range(500)]
    try:
        time.sleep(2)
        before = w.processor_s("daphne")
        began = time.monotonic()
        for _ in range(3):
            with urllib.request.urlopen(f"{w.site.url}/queue/", timeout=30) as page:
                page.read()
        page_s = (time.monotonic() - began) / 3
        w.check_alive(8)
        time.sleep(3)
        used = (w.processor_s("daphne") - before) / (time.monotonic() - began)
    finally:
        for each in sockets:
            each.close()
    require(page_s < 3, f"a page takes {page_s:.1f} s")
    require(used < 0.5, f"the site spends {used:.0%} of a processor")
    return f"a page takes {page_s:.1f} s; {used:.0%} of a processor"


def _open_ask(w: World, door: Door) -> socket.socket:
    assert isinstance(door, HttpsDoor)
    body = json.dumps(door.wish(urgencies=["-builds"]))
    parts = urlsplit(w.site.url)
    opened = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)
    opened.sendall(
        f"POST /runner/v1/take HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {door.text}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    return opened


@attack(HTTPS, by="the server waits without holding anybody up")
def slow_and_lying_bodies(w: World, door: Door) -> str:
    """Leave 100 bodies unfinished, name no length, a negative, and two."""
    parts = urlsplit(w.site.url)
    assert isinstance(door, HttpsDoor)
    head = "POST /runner/v1/events HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Authorization: Bearer {door.text}"
    ends = ("Content-Length: 1000", "Content-Length: -1", "Transfer-Encoding: chunked", "X: y")
    ends += ("Content-Length: 1\r\nContent-Length: 9", "Content-Length: 99999999999999999999")
    opened = []
    for number in range(100):
        each = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)
        each.sendall(f"{head}\r\n{ends[number % len(ends)]}\r\n\r\n{{".encode())
        opened.append(each)
    try:
        w.check_alive()
    finally:
        for each in opened:
            each.close()
    return "others notice nothing"


@attack(HTTPS, by="what is long to read is read beside the site's pages")
def bodies_that_take_long_to_read(w: World, door: Door) -> str:
    """Post two bodies of 7 MB at once again and again, each a million small values."""
    assert isinstance(door, HttpsDoor)
    values = ",".join(['{"a":[]}'] * 900_000)
    event = door.event(job="evaluation", job_id="0" * 32, attempt=1, seq=1, kind="alive")
    body = '{"events": [' + event.replace("{}", f'{{"a":[{values}]}}') + "]}"
    stop = threading.Event()

    def flood() -> None:
        other = w.https(door.token, host=door.host)
        while not stop.is_set():
            try:
                other.post("events", body, timeout_s=60)
            except Exception:
                return

    threads = [threading.Thread(target=flood, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    worst = 0.0
    try:
        for _ in range(4):
            began = time.monotonic()
            with urllib.request.urlopen(f"{w.site.url}/", timeout=60) as page:
                page.read()
            worst = max(worst, time.monotonic() - began)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    require(worst < 6, f"a page takes {worst:.1f} s")
    return f"a page takes {worst:.1f} s at most"

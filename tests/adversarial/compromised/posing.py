"""Attacks by heartbeats: other names, other devices, other boots, and far too much of them."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.adversarial.compromised.contract import CATALOGUE, HTTPS, REDIS, Attack, attack, require
from tests.adversarial.compromised.doors import Door
from tests.adversarial.compromised.world import FOREIGN, World


def _runner(w: World, name: str) -> tuple[Any, ...]:
    columns = "state, boot_id, device_id, token_id, reason"
    found = w.rows(f"SELECT {columns} FROM runs_app_runner WHERE name = ?", name)
    return found[0] if found else ()


@attack(REDIS, HTTPS, by="a token serves the devices that an admin allowed")
def heartbeat_for_another_device(w: World, door: Door) -> str:
    """Report as a runner of a device that the token doesn't serve."""
    door.say(door.heartbeat(name="poser", device=FOREIGN))
    answer = w.heard(door)
    require(not _runner(w, f"{door.token}.poser"), "it is a runner of that device now")
    return answer


@attack(REDIS, HTTPS, by="a token serves the devices that an admin allowed")
def heartbeat_for_an_invented_device(w: World, door: Door) -> str:
    """Report a device that nobody knows, so that the site makes it and queues kernels for it."""
    door.say(door.heartbeat(name="poser", device="forged-h100", device_kind="cuda"))
    answer = w.heard(door)
    require(not w.count("device", "slug = 'forged-h100'"), "the site has that device now")
    return answer


@attack(REDIS, HTTPS, by="a runner's name begins with that of its token")
def heartbeat_with_another_runners_name(w: World, door: Door) -> str:
    """Report under an honest runner's full name, with its boot, and say that it has stopped."""
    w.victim()
    before = _runner(w, "honest.honest-host")
    for name in ("honest.honest-host", "honest-host"):
        for boot in (w.honest.boot_id, "stolen"):
            door.say(door.heartbeat(name=name, boot_id=boot, state="stopped"))
    w.heard(door)
    require(_runner(w, "honest.honest-host") == before, "the honest runner is changed")
    require(w.job(w.honest.last_order.job_id)["status"] == "RUNNING", "its job is lost")
    door.say(door.heartbeat())
    return f"they are {door.token}.honest.honest-host and {door.token}.honest-host"


@attack(REDIS, HTTPS, by="names are letters, digits, dots, dashes and underscores")
def names_that_are_none(w: World, door: Door) -> str:
    """Call runners `../x`, a line with control characters, NUL, a lone surrogate, nothing."""
    own = f"name LIKE '{door.token}.%'"  # others may be heard of meanwhile
    w.heard(door)  # and what the attack before this one said last
    before, answer = w.count("runner", own), ""
    for name in ("../../etc", "a\nup | forged line", "\x1b[2J", "a\0b", "\ud800", "", "a" * 300):
        door.say(door.heartbeat(name=name))
        answer = w.heard(door)
    require(w.count("runner", own) == before, "one of them is a runner now")
    return answer


@attack(REDIS, HTTPS, by="64 hosts a token")
def a_thousand_runners(w: World, door: Door) -> str:
    """Report as 200 hosts of one token."""
    for number in range(200):
        door.say(door.heartbeat(name=f"n{number}"))
    answer = w.heard(door)
    found = w.count("runner", f"name LIKE '{door.token}.%'")
    require(found <= 64, f"it has {found} hosts")
    return f"{found} hosts; {answer}"


@attack(HTTPS, by="8 devices that a token may bring by itself")
def a_thousand_devices(w: World, door: Door) -> str:
    """Bring 30 new devices with a token for new devices."""
    newcomer = w.https("newcomer", "new-0")
    for number in range(30):
        newcomer.say(newcomer.heartbeat(device=f"new-{number}"))
    answer = w.heard(newcomer)
    found = w.count("device", "slug LIKE 'new-%'")
    require(found <= 8, f"there are {found} of them")
    return f"{found} devices; {answer}"


@attack(REDIS, by="8 devices that a token may bring by itself")
def a_thousand_devices_with_the_login_of_this_machine(w: World, door: Door) -> str:
    """Bring 30 new devices with the login of `make up`'s own runners, which serve any device."""
    local = w.local
    for number in range(30):
        local.say(local.heartbeat(name="poser", device=f"any-{number}"))
    answer = w.heard(local)
    found = w.count("device", "slug LIKE 'any-%'")
    require(found <= 8, f"there are {found} of them")
    return f"{found} devices; {answer}"


@attack(HTTPS, by="no device's name ends like a queue's")
def a_device_named_like_a_queue(w: World, door: Door) -> str:
    """Bring a device `shared-gpu-runs`: its queue is that of the runs on `shared-gpu`."""
    newcomer = w.https("newcomer", "new-0")
    for slug in ("shared-gpu-runs", "foreign-gpu-audits", "cpu-builds"):
        newcomer.say(newcomer.heartbeat(device=slug))
    answer = w.heard(newcomer)
    found = w.count("device", "slug IN ('shared-gpu-runs', 'foreign-gpu-audits', 'cpu-builds')")
    require(not found, f"{found} of them are devices now")
    return answer


@attack(REDIS, HTTPS, by="a boot id is letters, digits and dashes")
def a_job_that_nobody_misses(w: World, door: Door) -> str:
    """Take a job with a boot id like that of a spool, whose jobs are never missed."""
    boot, door.boot_id = door.boot_id, "spool:mine"
    try:
        door.say(door.heartbeat(name=door.host))
        answer = w.heard(door)
        door.ask(door.wish(), 2)
        held = w.count("evaluation", "runner_boot_id LIKE 'spool:%' AND status = 'RUNNING'")
        require(not held, "it holds a job that nobody takes back")
    finally:
        door.boot_id = boot
        door.say(door.heartbeat())
    return answer


_HUGE = 3_000_000
_BLOATED: dict[str, Any] = {
    "reason": "x" * _HUGE,
    "version": "x" * _HUGE,
    "device_name": "x" * _HUGE,
    "boot_id": "x" * _HUGE,
    "current": ["x" * _HUGE],
    "packages": {f"package-{n}": "1.0" for n in range(200_000)},
    "builds": 10**30,
    "sensors": {"temperature_c": "nan", "clock_mhz": 1e308},
}


def _bloated(field: str, value: Any) -> Attack:
    def run(w: World, door: Door) -> str:
        door.say(door.heartbeat(**{field: value}))
        answer = w.heard(door)
        row = w.rows("SELECT * FROM runs_app_runner WHERE name = ?", f"{door.token}.{door.host}")
        size = len(repr(row))
        require(size < 200_000, f"the runner's row has {size} characters, on every page of queues")
        return f"{answer}; a row of {size} characters"

    what = f"a heartbeat with a huge {field}"
    return Attack(what, f"Send {what}, so that pages show it.", "64 KiB a heartbeat", (HTTPS,), run)


CATALOGUE.extend(_bloated(field, value) for field, value in _BLOATED.items())


@attack(REDIS, by="the site reads others meanwhile")
def a_hundred_thousand_events(w: World, door: Door) -> str:
    """Send 20,000 asks and 80,000 events of jobs that are not there, while others work."""
    key = f"kbench:{w.facts['mailboxes'][door.token]}:events"
    lost = door.event(job="evaluation", job_id="0" * 32, attempt=1, seq=1, kind="alive")
    jobs = w.facts["foreign"]
    for part in range(100):
        with door.redis.pipeline(transaction=False) as pipe:  # type: ignore[attr-defined]
            for _ in range(800):
                pipe.xadd(key, {"event": lost})
            for _ in range(200):
                pipe.xadd(key, {"ask": _ask(door, jobs[part % len(jobs)])})
            pipe.execute()
    began = time.monotonic()
    order = w.victim()
    w.honest.say(w.honest.about(order, "started", 1, {}))
    w.until(lambda: w.job(order.job_id)["last_seq"], "an honest runner is not heard", 20)
    took = time.monotonic() - began
    left = w.keys.xlen(key)
    w.keys.delete(key)
    require(took < 20, f"an honest runner waits {took:.0f} s")
    return f"an honest runner's job began {took:.1f} s later, {left} entries unread"


def _ask(door: Door, job_id: str) -> str:
    return json.dumps(door.wish(job=f"evaluation-{job_id}-1"))

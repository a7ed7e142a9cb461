"""Attacks by a guest: a runner on a host that the admins don't control; and by one that is lost."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import httpx2
import redis

from gpu_runner.data import mailbox
from tests.adversarial.compromised import inventing
from tests.adversarial.compromised.contract import HTTPS, REDIS, attack, denied, require
from tests.adversarial.compromised.doors import Door, HttpsDoor
from tests.adversarial.compromised.world import QUIET, World


def _guest_gets(w: World, name: str, urgency: str) -> bool:
    """Whether it gets that job, where a trusted runner is at work."""
    for token in ("honest", "guest"):
        door = w.https(token, QUIET, host="quiet")
        door.say(door.heartbeat())
        w.heard(door)
    found = door.ask(door.wish(job=name)), door.ask(door.wish(urgencies=[urgency]))
    return any(each is not None and str(each.name) == name for each in found)


@attack(HTTPS, by="guests check no task")
def a_guest_checks_a_task(w: World, door: Door) -> str:
    """Ask as a guest for the check of a task."""
    require(not _guest_gets(w, w.facts["check"], ""), "it decides whether a task is sound")
    return "no order"


@attack(HTTPS, by="guests audit only where no trusted runner is")
def a_guest_audits(w: World, door: Door) -> str:
    """Ask as a guest for the audit of somebody's record."""
    require(
        not _guest_gets(w, w.facts["audit"], "-audits"), "it audits what a trusted runner measured"
    )
    return "no order"


@attack(HTTPS, by="guests measure baselines only where no trusted runner is")
def a_guest_measures_baselines(w: World, door: Door) -> str:
    """Ask as a guest for baselines, against which all others are compared."""
    require(
        not _guest_gets(w, w.facts["baselines"], "-baselines"), "it measures everybody's baselines"
    )
    return "no order"


@attack(HTTPS, by="a guest's result says so")
def a_guest_reports_a_record(w: World, door: Door) -> str:
    """Report a result as a guest, and claim a trusted runner's name in the event."""
    order = w.guest.take()
    told = {"runner": "honest.host", "at": 0.0}
    w.guest.say(w.guest.about(order, "started", 1, told))
    w.guest.say(w.guest.about(order, "finished", 2, {"result": inventing.invented(order)}))
    w.heard(w.guest)
    key = order.job_id.replace("-", "")
    [(guest, name)] = w.rows(
        "SELECT e.guest, r.name FROM runs_app_evaluation e JOIN runs_app_runner r"
        " ON r.id = e.runner_id WHERE e.id = ?",
        key,
    )
    require(guest and name == "guest.host", f"it counts as that of {name}")
    [(payload,)] = w.rows(
        "SELECT payload FROM runs_app_evaluationevent WHERE evaluation_id = ? AND kind='started'",
        key,
    )
    require("honest" not in payload, "the story of the evaluation names another runner")
    return f"stored as {name}'s, a guest's"


def _ask_until_the_end(w: World, https: HttpsDoor, ended: dict[str, Any]) -> None:
    nothing = json.dumps(https.wish(runner="host2", urgencies=["-builds"]))
    ended["answer"] = httpx2.post(
        f"{w.site.url}/runner/v1/take",
        content=nothing,
        headers={"Authorization": f"Bearer {https.text}"},
        timeout=40,
    ).status_code
    ended["at"] = time.monotonic()


@attack(f"{REDIS}, {HTTPS}", by="a revoked token is nobody's")
def go_on_after_the_token_was_revoked(w: World, door: Door) -> str:
    """Hold a job, an open ask and a connection, have the token revoked, and go on."""
    https, login = w.https("lost"), w.login("lost")
    order = w.held(https)
    ended: dict[str, Any] = {}
    blocked: dict[str, Any] = {}
    waiting = threading.Thread(target=_ask_until_the_end, args=(w, https, ended), daemon=True)
    blpop = threading.Thread(
        target=lambda: blocked.update(
            seen=denied(login.redis.blpop, [mailbox.answer_key(login.mailbox, "0" * 32)], 30)
        ),
        daemon=True,
    )
    waiting.start()
    blpop.start()
    time.sleep(1)
    login.say(login.event(kind="alive", job="evaluation", job_id="x" * 1_000))
    code = "from tests.adversarial.compromised import stage; stage.take_back('lost')"
    w.site.manage("shell", "-v", "0", "-c", code)
    blpop.join(10)
    require("seen" in blocked, "its connection to Redis goes on")
    denied(login.say, "{}")
    denied(redis.Redis.from_url(login.url, socket_timeout=5).ping)
    for path in ("events", "take", "word"):
        answer = https.post(path, "{}").status_code
        require(answer == 401, f"{path} answers {answer}")
    began = time.monotonic()
    waiting.join(12)
    require("at" in ended, "its open ask goes on")
    took = max(ended["at"] - began, 0.0)
    require(ended["answer"] == 401, f"its open ask was answered with {ended['answer']}")
    require(w.job(order.job_id)["attempt"] == order.attempt + 1, "its job is not given back")
    require(not w.keys.exists(mailbox.events_key(login.mailbox)), "its stream is still there")
    return f"401; {blocked['seen'][:60]}; the open ask ended after {took:.1f} s"


@attack(HTTPS, by="only tokens that the site made")
def guess_a_token(w: World, door: Door) -> str:
    """Show no token, an old form, an empty one, one with control characters, a user's."""
    answers = set()
    for header in ("", "Bearer", "Basic eDp5", "Bearer kbr_", "Bearer " + "x" * 5000):
        headers = {"Authorization": header} if header else {}
        for path in ("take", "events", "word"):
            answer = httpx2.post(
                f"{w.site.url}/runner/v1/{path}", content="{}", headers=headers, timeout=20
            )
            answers.add(answer.status_code)
    require(answers == {401}, f"answers are {answers}")
    for path in ("", "take/", "../admin", "take%00", "events/../take"):
        answer = httpx2.post(f"{w.site.url}/runner/v1/{path}", content="{}", timeout=20)
        require(answer.status_code in (401, 403, 404), f"{path!r} answers {answer.status_code}")
    return f"{answers}"

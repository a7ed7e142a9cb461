"""Who may add runners and revoke them, and what a runner's login reaches of Redis."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from redis import Redis
from redis.exceptions import NoPermissionError, RedisError

from gpu_runner.daemon.sources import redis_source
from gpu_runner.daemon.sources.contract import Away
from gpu_runner.daemon.sources.redis_source import RedisSource
from gpu_runner.data import codec, mailbox
from gpu_runner.data.order import Word
from gpu_runner.data.queue import Urgency, queue_name
from runs_app.core.checks.services import request_check
from runs_app.core.errors import NotAllowed, SubmissionError, WrongState
from runs_app.core.messaging import orders
from runs_app.core.runners.handing import hand_over
from runs_app.core.runners.tokens import (
    add_runner,
    clear_flags,
    digest,
    find_token,
    grant_login,
    known_tokens,
    local_runner,
    revoke,
)
from runs_app.core.work.admins import flag
from runs_app.models import Runner, RunnerFlag, RunnerToken, Status
from tasks_app.models import AuditEntry
from tests import factories as make
from tests.unit.queued import Jobs

pytestmark = pytest.mark.django_db

NEW = RunnerToken.Serves.NEW
LISTED = RunnerToken.Serves.LISTED


def add(name: str = "lab-7", **changes: Any) -> tuple[RunnerToken, str]:
    fields: dict[str, Any] = {
        "serves": NEW, "devices": [], "trusted": False, "user": make.make_admin(), "now": make.NOW,
    }  # fmt: skip
    return add_runner(name=name, **{**fields, **changes})


class TestAdding:
    def test_its_text_is_shown_once_and_found_again(self) -> None:
        admin = make.make_admin(username="judge")
        token, text = add(user=admin, devices=[make.make_cpu()], serves=LISTED, trusted=True)
        assert text.startswith("kbr_")
        assert (len(text) > 40, text != add("lab-8")[1]) == (True, True)
        assert (token.digest, token.prefix) == (digest(text), text[:9])
        stored = str(RunnerToken.objects.filter(pk=token.pk).values().get())
        assert text not in stored
        assert text[9:] not in stored
        assert find_token(text) == token
        assert find_token(text[:-1]) is None
        assert find_token("") is None
        assert (token.trusted, token.made_by, token.serves) == (True, admin, "listed")
        assert [device.slug for device in token.devices.all()] == ["cpu"]
        entry = AuditEntry.objects.get(name="lab-7")
        assert (entry.kind, entry.name, entry.actor) == ("runner_added", "lab-7", admin)
        assert entry.details == {"devices": "CPU", "trusted": True}
        assert text not in str(AuditEntry.objects.values())
        revoke(token=token, reason="lent back", user=admin, now=make.NOW)
        with pytest.raises(SubmissionError, match="runner 'lab-7' already exists"):
            add(user=admin)  # a name is used once, even by a revoked one

    @pytest.mark.parametrize("name", ["", "Lab", "a b", "-lab", "lab.7", "x" * 41, "lab_7", "läb"])
    def test_a_name_that_could_be_taken_for_another_is_refused(self, name: str) -> None:
        for field, wrong in (("name", {"name": name}), ("devices", {"serves": LISTED})):
            with pytest.raises(SubmissionError) as refusal:
                add(**wrong)
            assert refusal.value.field == field
        assert not RunnerToken.objects.exists()

    def test_the_one_beside_the_site_is_made_once(self) -> None:
        token = local_runner(now=make.NOW)
        assert local_runner(now=make.later(9)) == token
        assert (token.name, token.trusted, token.serves) == ("local", True, "any")
        revoke(token=token, reason="moved", user=make.make_admin(), now=make.NOW)
        another = local_runner(now=make.NOW)
        assert (another.name, another.trusted) == ("local-2", True)
        assert local_runner(now=make.NOW) == another


def test_only_admins_decide_about_runners() -> None:
    token, user = make.make_runner_token(), make.make_user()
    flag(token, "it lies", now=make.NOW)
    acts: tuple[Callable[[], Any], ...] = (
        lambda: add(user=user),
        lambda: revoke(token=token, reason="why not", user=user, now=make.NOW),
        lambda: clear_flags(token=token, reason="why not", user=user, now=make.NOW),
    )
    for act in acts:
        with pytest.raises(NotAllowed):
            act()
    token.refresh_from_db()
    assert token.revoked_at is None
    assert RunnerToken.objects.count() == 1
    assert RunnerFlag.objects.filter(cleared_at=None).count() == 1
    assert not AuditEntry.objects.exists()


class TestRevoking:
    def test_it_gives_all_work_back_and_lets_nobody_in(self, jobs: Jobs) -> None:
        admin, (token, text) = make.make_admin(), add(user=make.make_admin(username="other"))
        runner = make.make_runner(token=token, current=["evaluation-x-1"])
        mine = make.make_evaluation()
        asked = {"version": mine.task_version, "device": mine.device, "user": admin}
        check = request_check(**asked, now=make.NOW)
        others = make.make_evaluation(source=f"{make.SOURCE}// others")
        make.hand_over(others)
        hand_over(token=token, ask=make.make_ask(runner), now=make.NOW)
        mine.refresh_from_db()
        assert mine.runner == runner
        assert revoke(token=token, reason="it  lies", user=admin, now=make.later(5)) == 1
        for row, state in ((mine, (Status.QUEUED, 2)), (others, (Status.RUNNING, 1))):
            row.refresh_from_db()
            assert (row.status, row.attempt) == state
        check.refresh_from_db()
        assert (check.status, check.attempt) == (Status.QUEUED, 1)  # it waited all the time
        assert mine.reason == "runner lab-7 was revoked: it lies"
        runner.refresh_from_db()
        assert (runner.state, runner.current) == (Runner.State.STOPPED, [])
        assert runner.reason == "revoked: it lies"
        assert find_token(text) is None
        assert [known.name for known in known_tokens()] == ["test"]
        assert hand_over(token=token, ask=make.make_ask(runner), now=make.later(6)) is None
        entry = AuditEntry.objects.get(kind="runner_revoked")
        assert (entry.name, entry.actor, entry.reason) == ("lab-7", admin, "it lies")
        with pytest.raises(WrongState, match="lab-7 has already been revoked"):
            revoke(token=token, reason="it lies", user=admin, now=make.later(9))
        with pytest.raises(SubmissionError):  # it is said why
            revoke(token=others.runner.token, reason=" ", user=admin, now=make.NOW)


def test_doubts_are_settled_with_the_reason() -> None:
    admin, token, other = make.make_admin(), make.make_runner_token(), add()[0]
    for number in range(3):
        flag(token, f"reason {number}", now=make.NOW)
    flag(other, "reason", now=make.NOW)
    with pytest.raises(SubmissionError):
        clear_flags(token=token, reason="", user=admin, now=make.NOW)
    assert clear_flags(token=token, reason="a wrong clock", user=admin, now=make.later(5)) == 3
    settled = RunnerFlag.objects.filter(token=token)
    assert set(settled.values_list("cleared_at", "cleared_by")) == {(make.later(5), admin.pk)}
    assert RunnerFlag.objects.get(token=other).cleared_at is None
    entry = AuditEntry.objects.get(kind="runner_cleared")
    assert (entry.name, entry.reason, entry.details) == ("test", "a wrong clock", {"doubts": 3})
    with pytest.raises(WrongState, match="nobody doubts test"):
        clear_flags(token=token, reason="again", user=admin, now=make.NOW)


@pytest.fixture
def site(redis_url: str, settings: Any) -> Redis:
    """The site's own connection to the runners' Redis, in which there are no other logins."""
    settings.RUNNERS_REDIS_URL = redis_url
    client = orders.connection()
    for user in client.acl_list():
        name = user.split()[1]
        if name != "default":
            client.execute_command("ACL", "DELUSER", name)
    return client


def login(token: RunnerToken, *devices: str) -> tuple[Redis, str]:
    """A runner's connection, and its address."""
    token.devices.set(devices)
    url = grant_login(token)
    return Redis.from_url(url), url


QUEUE = "rq:queue:" + queue_name("cpu")


FORBIDDEN = {
    "what is for other devices, and what stands in jobs": """
        BLPOP rq:queue:device-nvidia-h200 1;
        BLPOP rq:queue:device-cpu rq:queue:device-nvidia-h200 1; BLPOP rq:queue:device-cpux 1;
        BLPOP rq:queue:device-cpu-other 1; BLPOP rq:queue:runs 1; LPOP rq:queue:device-cpu;
        RPUSH rq:queue:device-cpu x; LRANGE rq:queue:device-cpu 0 -1; DEL rq:queue:device-cpu;
        HGETALL rq:job:x; GET rq:job:x; HSET rq:job:x data x;
    """,
    "other runners' mailboxes": """
        XADD kbench:runner-999:events * event {}; BLPOP kbench:runner-999:answer:0 1;
        GET kbench:runner-999:word:host-1;
    """,
    "what the site says and keeps of its own": """
        XREAD STREAMS {own}:events 0; XRANGE {own}:events - +; XDEL {own}:events 1-1;
        XTRIM {own}:events MAXLEN 0; XGROUP CREATE {own}:events mine 0; RPUSH {own}:answer:0 {};
        XADD {own}:word:host-1 * x y; XADD {own}:events2 * x y; BLPOP {own}:word:host-1 1;
        SET {own}:word:host-1 x; DEL {own}:word:host-1; GET {own}:events;
        XADD kbench:dead-letters * x y; GET kbench:1:sessions; GET :1:views.decorators.cache;
        SET kbench:1:sessions x;
    """,
    "looking around, and taking over": """
        KEYS *; SCAN 0; RANDOMKEY; DBSIZE; FLUSHALL; FLUSHDB; CONFIG GET *; CONFIG SET dir /tmp;
        ACL WHOAMI; ACL LIST; ACL SETUSER default on; EVAL return_1 0; FUNCTION LIST;
        SCRIPT LOAD return_1; SUBSCRIBE kbench; PSUBSCRIBE *; PUBLISH kbench x; SPUBLISH kbench x;
        MONITOR; CLIENT LIST; CLIENT KILL ID 1; CLIENT TRACKING ON BCAST; CLIENT PAUSE 1; INFO;
        SHUTDOWN NOSAVE; REPLICAOF 127.0.0.1 1; SLOWLOG GET; MULTI;
        COPY {own}:events {own}:answer:0; RENAME {own}:events {own}:answer:0;
        MIGRATE 127.0.0.1 1 {own}:events 0 1; MODULE LIST;
    """,
}


class TestLogins:
    def test_what_a_runner_needs_it_may_do(self, site: Redis) -> None:
        token = make.make_runner_token()
        runner, _ = login(token, "cpu")
        evaluation = make.make_evaluation()
        for urgency in Urgency:
            site.rpush("rq:queue:" + queue_name("cpu", urgency), f"x-{urgency}")
        keys = ["rq:queue:" + queue_name("cpu", urgency) for urgency in Urgency]
        for urgency in Urgency:
            assert runner.blpop(keys, 1)[1].decode() == f"x-{urgency}"
        runner.xadd(mailbox.events_key(token.mailbox), {"event": "{}"}, maxlen=9, approximate=True)
        assert site.xlen(mailbox.events_key(token.mailbox)) == 1
        orders.answer(token, "0" * 32, orders.order_of(evaluation))
        _, document = runner.blpop([mailbox.answer_key(token.mailbox, "0" * 32)], 1)
        assert json.loads(document)["job_id"] == str(evaluation.pk)
        held = make.make_runner(token=token, wanted="drain", wanted_reason="fan")
        assert orders.tell(held)
        said = runner.get(mailbox.word_key(token.mailbox, held.own_name))
        assert codec.decode(Word, json.loads(said)).hold == "by an admin: fan"

    @pytest.mark.parametrize("what", FORBIDDEN)
    def test_everything_else_it_may_not(self, site: Redis, what: str) -> None:
        token = make.make_runner_token()
        runner, _ = login(token, "cpu")
        commands = FORBIDDEN[what].replace("{own}", f"kbench:{token.mailbox}").split(";")[:-1]
        allowed = []
        for command in commands:
            try:
                runner.execute_command(*command.split())
            except NoPermissionError:
                continue
            allowed.append(command)
        assert (allowed, len(commands) > 2) == ([], True)

    def test_a_revoked_one_is_out_at_once(
        self, site: Redis, django_capture_on_commit_callbacks: Any
    ) -> None:
        token, other = make.make_runner_token(), make.make_runner_token(name="other")
        runner, url = login(token, "cpu")
        stays, _ = login(other, "cpu")
        site.rpush(QUEUE, "a", "b", "c")
        assert runner.blpop([QUEUE], 1)
        with django_capture_on_commit_callbacks(execute=True):
            revoke(token=token, reason="it lies", user=make.make_admin(), now=make.NOW)
        for connection in (runner, Redis.from_url(url)):
            with pytest.raises(RedisError):
                connection.blpop([QUEUE], 1)
        assert site.llen(QUEUE) == 2
        assert stays.blpop([QUEUE], 1)

    def test_nobody_gets_in_with_an_earlier_password(self, site: Redis) -> None:
        token = make.make_runner_token()
        runner, url = login(token, "cpu")
        parts, home = urlsplit(url), urlsplit(orders.settings.RUNNERS_REDIS_URL)
        assert parts.username == token.mailbox == f"runner-{token.pk}"
        assert (parts.hostname, parts.port, parts.path) == (home.hostname, home.port, home.path)
        assert len(parts.password or "") > 40
        RedisSource(url)
        site.rpush(QUEUE, "a", "b")
        assert runner.blpop([QUEUE], 1)
        again, _ = login(token, "cpu")
        assert again.blpop([QUEUE], 1)
        for earlier in (runner, Redis.from_url(url)):
            with pytest.raises(RedisError):
                earlier.blpop([QUEUE], 1)

    def test_it_reaches_a_new_device_as_soon_as_that_is_its_own(
        self,
        site: Redis,
        django_capture_on_commit_callbacks: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        token = make.make_runner_token(serves=NEW, trusted=False)
        runner, url = login(token)
        for name, value in {"_PATIENCE": 2, "_PAUSE_S": 0, "_WAIT_S": 0.1}.items():
            monkeypatch.setattr(redis_source, name, value)
        source, ask = RedisSource(url), make.make_ask(make.make_runner(), device="nvidia-h100")
        assert [source.take(ask), source.take(ask)] == [None, None]  # it waits for its queues
        with pytest.raises(Away, match="No permissions"):
            source.take(ask)
        queue = "rq:queue:device-nvidia-h100"
        site.rpush(queue, "a")
        with pytest.raises(NoPermissionError):
            runner.blpop([queue], 1)
        hopper = {"device": "nvidia-h100", "device_kind": "cuda", "device_name": "H100"}
        with django_capture_on_commit_callbacks(execute=True):
            make.beat(token=token, **hopper)
            make.beat(token=make.make_runner_token(name="other"))  # gets no login by that
        assert {user.split()[1] for user in site.acl_list()} == {"default", token.mailbox}
        assert runner.blpop([queue], 1)
        with pytest.raises(NoPermissionError):
            runner.blpop([QUEUE], 1)


class TestTheCommand:
    def test_it_prints_a_new_address_each_time(self, site: Redis, capsys: Any) -> None:
        make.make_runner_token(name="lab").devices.add(make.make_cpu())
        printed = []
        for _ in range(2):
            call_command("runner_login", "lab")
            printed.append(capsys.readouterr().out.strip())
        assert len(set(printed)) == 2
        site.rpush(QUEUE, "a")
        assert Redis.from_url(printed[1]).blpop([QUEUE], 1)
        call_command("runner_login", "--local")
        assert f"://runner-{RunnerToken.objects.get(name='local').pk}:" in capsys.readouterr().out
        with pytest.raises(CommandError, match="would disconnect this host's runners"):
            call_command("runner_login", "local")

    def test_a_runner_that_is_not_there_is_named_with_those_that_are(self, site: Redis) -> None:
        make.make_runner_token(name="lab")
        make.make_runner_token(name="old", revoked_at=make.NOW)
        for name in ("lap", "old"):
            with pytest.raises(CommandError, match=f"no runner '{name}'.* Known: lab$"):
                call_command("runner_login", name)

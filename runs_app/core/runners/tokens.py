"""Runners' tokens: made, recognised, revoked; and their logins on the runners' Redis."""

from __future__ import annotations

import hashlib
import itertools
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from redis.exceptions import RedisError, ResponseError
from rq import Queue

from gpu_runner.data import mailbox
from gpu_runner.data.queue import Urgency, queue_name
from runs_app.core.errors import SubmissionError, WrongState
from runs_app.core.messaging import orders
from runs_app.core.work import lifecycle
from runs_app.core.work.admins import check_admin, checked_reason
from runs_app.models import Device, Runner, RunnerFlag, RunnerToken
from tasks_app.models import AuditEntry
from tasks_app.publishing.audit_log import add_entry

_PREFIX = "kbr_"
_RANDOM_BYTES = 32
_SHOWN = 9
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

_COMMANDS = (
    *("-@all", "+auth", "+hello", "+ping", "+select", "+client|setinfo", "+client|setname"),
    "+get",
)
"""All that a runner needs of Redis, beside the two commands of `_rules`."""


@transaction.atomic
def add_runner(
    *,
    name: str,
    serves: RunnerToken.Serves,
    devices: Sequence[Device],
    trusted: bool,
    user: User,
    now: datetime,
) -> tuple[RunnerToken, str]:
    """A new token and its text, which is stored nowhere and so can be shown only now.

    Raises `NotAllowed`, `SubmissionError`.
    """
    check_admin(user)
    if not _NAME.fullmatch(name):
        raise SubmissionError(
            "name",
            "must be 1 to 40 lowercase letters, digits and dashes, and can't begin with a dash",
        )
    if RunnerToken.objects.filter(name=name).exists():
        raise SubmissionError("name", f"runner {name!r} already exists; choose another name")
    if serves == RunnerToken.Serves.LISTED and not devices:
        raise SubmissionError("devices", "choose at least one device, or allow new ones")
    token, text = _made(name, serves, trusted=trusted, user=user, now=now)
    token.devices.set(devices)
    shown = ", ".join(device.name for device in devices)
    details = {"devices": shown or serves.label, "trusted": trusted}
    _note(AuditEntry.Kind.RUNNER_ADDED, token, user, now, details=details)
    return token, text


def local_runner(*, now: datetime) -> RunnerToken:
    """The token of the runners that `make up` starts beside the site, made if there is none.

    After a revocation they get another one: whoever starts them has the site's own rights.
    """
    base = settings.LOCAL_RUNNER
    for name in itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2))):
        token = RunnerToken.objects.filter(name=name).first()
        if token is None:
            return _made(name, RunnerToken.Serves.ANY, trusted=True, user=None, now=now)[0]
        if is_local(token) and token.revoked_at is None:
            return token
    raise AssertionError("names don't end")


def is_local(token: RunnerToken) -> bool:
    """Whether `local_runner` has made it."""
    base, _, number = token.name.partition("-")
    return token.made_by_id is None and base == settings.LOCAL_RUNNER and (number or "2").isdigit()


def _made(
    name: str, serves: RunnerToken.Serves, *, trusted: bool, user: User | None, now: datetime
) -> tuple[RunnerToken, str]:
    text = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    token = RunnerToken.objects.create(
        name=name,
        digest=digest(text),
        prefix=text[:_SHOWN],
        serves=serves,
        trusted=trusted,
        made_by=user,
        created_at=now,
    )
    return token, text


@transaction.atomic
def revoke(*, token: RunnerToken, reason: str, user: User, now: datetime) -> int:
    """Let the token's runners in no more, and give their work back; how many jobs that were."""
    check_admin(user)
    why = checked_reason(reason, "reason")
    token = RunnerToken.objects.select_for_update(of=("self",)).get(pk=token.pk)
    if token.revoked_at is not None:
        raise WrongState("", f"{token.name} has already been revoked")
    token.revoked_at = now
    token.save(update_fields=["revoked_at"])
    # Before its jobs are looked for: whoever hands one over locks the runner first.
    token.runners.update(state=Runner.State.STOPPED, reason=f"revoked: {why}", current=[])
    reason = f"runner {token} was revoked: {why}"
    count = lifecycle.lose(Q(runner__token=token), reason=reason, now=now)
    _note(AuditEntry.Kind.RUNNER_REVOKED, token, user, now, reason=why)
    transaction.on_commit(lambda: forget_login(token))
    return count


@transaction.atomic
def clear_flags(*, token: RunnerToken, reason: str, user: User, now: datetime) -> int:
    """Say that the doubts about a runner are settled; how many there were."""
    check_admin(user)
    why = checked_reason(reason, "reason")
    opened = RunnerFlag.objects.filter(token=token, cleared_at=None)
    count = opened.update(cleared_at=now, cleared_by=user)
    if not count:
        raise WrongState("", f"nobody doubts {token.name}")
    _note(AuditEntry.Kind.RUNNER_CLEARED, token, user, now, reason=why, details={"doubts": count})
    return count


def find_token(text: str) -> RunnerToken | None:
    """The token with that text, unless it was revoked."""
    return RunnerToken.objects.filter(digest=digest(text), revoked_at=None).first()


def known_tokens() -> list[RunnerToken]:
    """All whose runners are heard."""
    return list(RunnerToken.objects.filter(revoked_at=None))


def digest(text: str) -> str:
    """What is stored of a token. It is random, so that a plain hash cannot be turned back."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def grant_login(token: RunnerToken) -> str:
    """Make the token's login on the runners' Redis anew; its address, with a new password.

    It ends every connection over an earlier one. Raises `RedisError`.
    """
    password = secrets.token_urlsafe(_RANDOM_BYTES)
    _acl("DELUSER", token.mailbox)  # else who is connected stays so
    _acl("SETUSER", token.mailbox, "reset", "on", f">{password}", *_rules(token))
    _keep()
    parts = urlsplit(settings.RUNNERS_REDIS_URL)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{token.mailbox}:{password}@{host}"))


def widen_login(token: RunnerToken) -> None:
    """Let a login that there is reach the queues of a device that its token serves by now.

    Without Redis it is done when the login is made anew.
    """
    try:
        if token.mailbox.encode() in _acl("USERS"):
            _acl("SETUSER", token.mailbox, "clearselectors", "resetkeys", *_rules(token))
            _keep()
    except RedisError as error:
        orders.log.warning("could not update the login of %s: %s", token, error)


def forget_login(token: RunnerToken) -> None:
    """Remove the token's login, end its connections, and drop what it said; later without Redis."""
    try:
        if _acl("DELUSER", token.mailbox):
            _keep()
        orders.connection().unlink(mailbox.events_key(token.mailbox))
    except RedisError as error:
        orders.log.warning("could not remove the login of %s: %s", token, error)


def forget_revoked() -> None:
    """Remove logins that could not be removed when their tokens were revoked.

    Call it when Redis is there again.
    """
    for token in RunnerToken.objects.exclude(revoked_at=None):
        forget_login(token)


def _acl(*words: str) -> Any:
    client: Any = orders.connection()
    return client.execute_command("ACL", *words)


def _rules(token: RunnerToken) -> list[str]:
    """What the login may do: each command with its own keys alone.

    With a key that it may pop from, `XADD` would put a stream where others expect a list.
    """
    own = token.mailbox
    devices = token.devices.values_list("slug", flat=True)
    names = (queue_name(slug, urgency) for slug in devices for urgency in Urgency)
    lists = [mailbox.answer_key(own, "*")]
    lists += [f"{Queue.redis_queue_namespace_prefix}{name}" for name in names]
    return [
        *_COMMANDS,
        f"%R~{mailbox.word_key(own, '*')}",
        f"(+xadd %W~{mailbox.events_key(own)})",
        f"(+blpop {' '.join(f'~{key}' for key in lists)})",
    ]


def _keep() -> None:
    """Keep logins over a restart of Redis, where it has a file for them."""
    try:
        _acl("SAVE")
    except ResponseError as error:
        orders.log.info("runner logins will only last until Redis restarts: %s", error)


def _note(
    kind: AuditEntry.Kind,
    token: RunnerToken,
    user: User,
    now: datetime,
    *,
    reason: str = "",
    details: dict[str, object] | None = None,
) -> None:
    add_entry(kind, now=now, actor=user, about=token.name, reason=reason, details=details or {})

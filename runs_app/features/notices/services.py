"""Tell people, and keep what they want to be told of."""

from __future__ import annotations

import functools
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.crypto import salted_hmac

from runs_app.core.errors import QuotaExceeded, SubmissionError
from runs_app.core.messaging import queues
from runs_app.features.notices.addresses import Resolve, resolve, url_refusal
from runs_app.features.notices.models import (
    Delivery,
    Notice,
    NoticeKind,
    NoticeSettings,
    Watch,
    Way,
    Webhook,
)
from runs_app.models import Device, Run
from tasks_app.models import Task

DELIVER_FUNCTION = "runs_app.features.notices.jobs.deliver_message"
_TIMEOUT_S = 90


def enqueue_delivery(delivery_id: object) -> bool:
    """Queue a try to deliver a message; a second job of one try does nothing.

    False if Redis could not be reached: then `look_after` queues it later.
    """
    return queues.enqueue_beside_runs(
        "delivery", DELIVER_FUNCTION, delivery_id, timeout_s=_TIMEOUT_S
    )


MOST_WATCHES, MOST_WEBHOOKS = 200, 5
_LONGEST_TEXT = 500


def tell(people: Iterable[User], kind: NoticeKind, text: str, url: str, *, now: datetime) -> int:
    """Tell each of these people once, by the ways that each wants; how many are told.

    Call it in the transaction that does what is told of; messages leave after its commit.
    """
    wanted = {person.pk: person for person in people if person.is_active}
    known = {row.user_id: row for row in NoticeSettings.objects.filter(user__in=wanted)}
    ways = {pk: Way(getattr(known.get(pk) or NoticeSettings(), kind)) for pk in wanted}
    told = [pk for pk in wanted if ways[pk] is not Way.OFF]
    rows = [
        Notice(
            user_id=pk,
            kind=kind,
            text=text[:_LONGEST_TEXT],
            url=url,
            created_at=now,
            awaits_digest=ways[pk] is Way.DAILY and settings.EMAIL_CONFIGURED,
        )
        for pk in told
    ]
    Notice.objects.bulk_create(rows)
    message = {"kind": str(kind), "text": text[:_LONGEST_TEXT], "url": absolute(url),
               "at": now.isoformat()}  # fmt: skip
    deliveries = [
        Delivery(user_id=hook.user_id, webhook=hook, payload=message, created_at=now, next_at=now)
        for hook in Webhook.objects.filter(user__in=told, stopped_reason="")
    ]
    if settings.EMAIL_CONFIGURED:
        mail = {"subject": text[:150], "lines": [f"{text} {absolute(url)}"]}
        deliveries += [
            Delivery(user_id=pk, payload=mail, created_at=now, next_at=now)
            for pk in told
            if ways[pk] is Way.EMAIL and wanted[pk].email
        ]
    for delivery in deliveries:
        delivery.save()
        transaction.on_commit(functools.partial(enqueue_delivery, delivery.pk))
    return len(told)


def absolute(path: str) -> str:
    """The whole address of a path of this site."""
    return f"{settings.SITE_URL}{path}"


def watch_key(*, task: Task | None, device: Device | None, run: Run | None) -> str:
    """Names what is watched; raises `SubmissionError` for nothing."""
    if run is not None:
        return f"run:{run.pk}"
    if task is None and device is None:
        raise SubmissionError("watch", "choose a task, a device or a run")
    return (
        f"{'board' if device else 'task'}:{task.pk if task else ''}:{device.pk if device else ''}"
    )


@transaction.atomic
def set_watch(
    *,
    user: User,
    on: bool,
    now: datetime,
    task: Task | None = None,
    device: Device | None = None,
    run: Run | None = None,
) -> None:
    """Watch something, or no longer; doing so twice changes nothing."""
    key = watch_key(task=task, device=device, run=run)
    rows = Watch.objects.filter(user=user)
    if not on:
        rows.filter(key=key).delete()
        return
    if rows.count() >= MOST_WATCHES and not rows.filter(key=key).exists():
        raise QuotaExceeded("watch", f"you already watch {MOST_WATCHES} things, which is the limit")
    values = {"task": task, "device": device, "run": run, "created_at": now}
    Watch.objects.get_or_create(user=user, key=key, defaults=values)


def set_ways(*, user: User, ways: Mapping[str, str]) -> None:
    """How `user` wants to be told, by kind; the form has checked the words."""
    NoticeSettings.objects.update_or_create(user=user, defaults=dict(ways))


def mark_read(*, user: User, now: datetime, notice_id: int | None = None) -> int:
    """Mark one notice of `user`, or all, as read; how many were not."""
    unread = Notice.objects.filter(user=user, read_at=None)
    return (unread.filter(pk=notice_id) if notice_id else unread).update(read_at=now)


@transaction.atomic
def add_webhook(*, user: User, url: str, now: datetime, look_up: Resolve = resolve) -> Webhook:
    """An address of `user` that is told of notices; raises `SubmissionError` naming the field."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if Webhook.objects.filter(user=user).count() >= MOST_WEBHOOKS:
        raise QuotaExceeded("url", f"you already have {MOST_WEBHOOKS} webhooks, which is the limit")
    if refusal := url_refusal(url, look_up):
        raise SubmissionError("url", refusal)
    return Webhook.objects.create(user=user, url=url, salt=secrets.token_hex(16), created_at=now)


def secret_of(webhook: Webhook) -> str:
    """The secret with which messages to it are signed; it is stored nowhere."""
    made = salted_hmac(f"kbench.webhook.{webhook.pk}", webhook.salt, algorithm="sha256")
    return f"whsec_{made.hexdigest()}"


def signature(secret: str, moment: int, body: bytes) -> str:
    """The value of the header: HMAC-SHA-256 of the moment in Unix seconds, a dot and the body."""
    made = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256)
    return f"t={moment},v1={made.hexdigest()}"

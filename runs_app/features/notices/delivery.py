"""Send what is on its way: again with growing pauses, and at last given up with a reason."""

from __future__ import annotations

import json
import logging
import smtplib
from collections import defaultdict
from datetime import datetime, timedelta

import httpcore2
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F

from runs_app.features.notices import services
from runs_app.features.notices.addresses import PublicBackend, post
from runs_app.features.notices.models import Delivery, Notice, Webhook
from runs_app.features.notices.services import absolute, secret_of, signature
from tasks_app.numbers import counted

log = logging.getLogger(__name__)

TRIES = 6
_FIRST_PAUSE = timedelta(seconds=30)  # then four times as long each time: 2 min to 2 h
_LEASE = timedelta(minutes=2)  # longer than a try can take
_GIVEN_UP = 20  # deliveries in a row, after which a webhook is told no more
_KEPT = timedelta(days=30)
_AT_ONCE = 200
_DAY = timedelta(days=1)


def deliver(*, delivery_id: int, now: datetime, backend: PublicBackend | None = None) -> bool:
    """Try once, if a try is due; whether the message arrived."""
    due = Delivery.objects.filter(pk=delivery_id, done_at=None, next_at__lte=now)
    if not due.update(attempt=F("attempt") + 1, next_at=now + _LEASE):
        return False  # somebody else tries, or it is over
    row = Delivery.objects.select_related("webhook", "user").get(pk=delivery_id)
    if row.webhook is None:
        error, status = _mail(row), None
    else:
        error, status = _post(row, row.webhook, now, backend or PublicBackend())
    _settle(row, error, status, now)
    return not error


def _post(
    row: Delivery, hook: Webhook, now: datetime, backend: PublicBackend
) -> tuple[str, int | None]:
    """Why it did not arrive, or nothing; and the status of the answer."""
    body = json.dumps({"id": row.pk, **row.payload}).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "kbench-webhook/1",
        "X-Kbench-Delivery": str(row.pk),
        "X-Kbench-Signature": signature(secret_of(hook), int(now.timestamp()), body),
    }
    try:
        status = post(hook.url, body, headers, backend)
    except (
        httpcore2.NetworkError,
        httpcore2.TimeoutException,
        httpcore2.ProtocolError,
        OSError,
        ValueError,
    ) as error:
        return f"{type(error).__name__}: {error}"[:300], None
    if 200 <= status < 300:
        return "", status
    moved = "; redirects are not followed" if 300 <= status < 400 else ""
    return f"answered with status {status}{moved}", status


def _mail(row: Delivery) -> str:
    """Why the e-mail was not sent, or nothing."""
    if not (settings.EMAIL_CONFIGURED and row.user.email and row.user.is_active):
        return "this account can't receive e-mail"
    end = f"You can turn this off: {absolute('/notices/settings/')}"
    message = EmailMessage(
        subject=f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{row.payload['subject']}",
        body="\n\n".join([*row.payload["lines"], end]),
        to=[row.user.email],
    )
    try:
        message.send()
    except (smtplib.SMTPException, OSError) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


@transaction.atomic
def _settle(row: Delivery, error: str, status: int | None, now: datetime) -> None:
    """Store how a try went."""
    values: dict[str, object] = {"error": error, "status": status}
    over = not error or row.attempt >= TRIES
    if over:
        values["done_at"] = now
    else:
        values["next_at"] = now + _FIRST_PAUSE * 4 ** (row.attempt - 1)
    Delivery.objects.filter(pk=row.pk, done_at=None).update(**values)
    if row.webhook_id is None or not over:
        return
    hooks = Webhook.objects.filter(pk=row.webhook_id)
    if not error:
        hooks.update(failures=0)
        return
    hooks.update(failures=F("failures") + 1)
    reason = f"{_GIVEN_UP} messages in a row weren't delivered; the last error: {error}"[:300]
    hooks.filter(failures__gte=_GIVEN_UP).update(stopped_reason=reason)


def look_after(*, now: datetime) -> int:
    """Queue what is due, make the day's e-mails, forget what is old; returns how many are queued.

    Raises `RedisError` without Redis.
    """
    _make_digests(now)
    due = Delivery.objects.filter(done_at=None, next_at__lte=now - timedelta(seconds=5))
    found = list(due.order_by("next_at").values_list("pk", flat=True)[:_AT_ONCE])
    for pk in found:
        services.enqueue_delivery(pk)
    Delivery.objects.filter(done_at__lt=now - _KEPT).delete()
    return len(found)


@transaction.atomic
def _make_digests(now: datetime) -> None:
    """One e-mail for each person whose oldest untold notice is a day old."""
    old = Notice.objects.filter(awaits_digest=True, created_at__lte=now - _DAY)
    people = list(old.order_by().values_list("user", flat=True).distinct()[:_AT_ONCE])
    if not people:
        return
    waiting = Notice.objects.filter(awaits_digest=True, user__in=people).order_by("created_at")
    lines: dict[int, list[str]] = defaultdict(list)
    for notice in waiting:
        lines[notice.user_id].append(f"{notice.text} {absolute(notice.url)}")
    Notice.objects.filter(awaits_digest=True, user__in=people).update(awaits_digest=False)
    for person in User.objects.filter(pk__in=people, is_active=True).exclude(email=""):
        said = lines[person.pk]
        subject = f"since yesterday: {counted(len(said), 'new notice')}"
        payload = {"subject": subject, "lines": said[:100]}
        Delivery.objects.create(user=person, payload=payload, created_at=now, next_at=now)

"""Make and recognise tokens of the API."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import OperationalError

from kbench_web.models import ApiToken

log = logging.getLogger(__name__)

_PREFIX = "kb_"
_RANDOM_BYTES = 32
_SHOWN = 9
_USE_RECORDED_EVERY = timedelta(minutes=1)


def create_token(
    *, user: User, name: str, scopes: Sequence[str], lifetime: timedelta, now: datetime
) -> tuple[ApiToken, str]:
    """A new token and its text, which is stored nowhere and so can be shown only now."""
    text = _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=text[:_SHOWN],
        digest=digest(text),
        scopes=list(scopes),
        created_at=now,
        expires_at=now + lifetime,
    )
    return token, text


def find_token(text: str, now: datetime) -> ApiToken | None:
    """The token with that text, with its use recorded; None if there is none."""
    token = ApiToken.objects.select_related("user").filter(digest=digest(text)).first()
    if token is not None and (
        token.last_used_at is None or now - token.last_used_at > _USE_RECORDED_EVERY
    ):
        _record_use(token, now)
    return token


def _record_use(token: ApiToken, now: datetime) -> None:
    try:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    except OperationalError as error:  # on a full disk people can still read
        log.warning("the use of token %s was not recorded: %s", token.prefix, error)


def digest(text: str) -> str:
    """What is stored of a token. It is random, so that a plain hash cannot be turned back."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

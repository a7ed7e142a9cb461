"""`Idempotency-Key`: a request that is sent twice is done once, and answered twice.

The key is stored in the transaction of what the request does. So there is either both or neither,
also if the site is killed in between. A refusal stores nothing: it may be tried again.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

from django.core.exceptions import RequestDataTooBig
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from kbench_web.api_access import known_token
from kbench_web.api_contract import IDEMPOTENCY_KEY
from kbench_web.models import ApiToken, IdempotencyKey
from runs_app.core.hooks import Bearer

SUBMIT = ApiToken.Scope.SUBMIT.value
HEADER = str(IDEMPOTENCY_KEY["name"])
KEPT = timedelta(days=1)

Run = Callable[..., HttpResponseBase]


def once(run: Run) -> Run:
    """A view of the API that does not do twice what has a key."""

    @functools.wraps(run)
    def checked(request: HttpRequest, **values: object) -> HttpResponseBase:
        key = request.headers.get(HEADER)
        if request.method != "POST" or key is None:
            return run(request, **values)
        token = known_token(request)
        if token is None or token.refusal(timezone.now()) or SUBMIT not in token.scopes:
            return run(request, **values)  # which refuses it
        if not re.fullmatch(r"[!-~]{1,100}", key):
            return _refused("must be 1 to 100 visible ASCII characters")
        try:
            digest = _digest(request)
        except RequestDataTooBig:
            return run(request, **values)
        return _once(functools.partial(run, request, **values), token, key, digest)

    return checked


def _once(
    run: Callable[[], HttpResponseBase], token: ApiToken | Bearer, key: str, digest: str
) -> HttpResponseBase:
    now = timezone.now()
    IdempotencyKey.objects.filter(user=token.user, created_at__lt=now - KEPT).delete()
    own = {"user": token.user, "bearer": _bearer(token), "key": key}
    if found := IdempotencyKey.objects.filter(**own).first():
        return _again(found, digest)
    try:
        with transaction.atomic():
            row = IdempotencyKey.objects.create(**own, digest=digest, created_at=now)
            response = run()
            if response.status_code >= HTTPStatus.BAD_REQUEST:
                transaction.set_rollback(True)
            elif isinstance(response, HttpResponse):
                row.status, row.body = response.status_code, response.content.decode()
                row.location = response.get("Location", "")
                row.save()
    except IntegrityError:  # the same request came at the same time
        found = IdempotencyKey.objects.filter(**own).first()
        if found is None:
            raise
        return _again(found, digest)
    return response


def _bearer(token: ApiToken | Bearer) -> str:
    return f"token {token.pk}" if isinstance(token, ApiToken) else token.name


def _again(found: IdempotencyKey, digest: str) -> HttpResponse:
    if found.digest != digest:
        return _refused("was used for another request; use a new key for each request")
    response = HttpResponse(found.body, content_type="application/json", status=found.status)
    response["Idempotent-Replay"] = "true"
    if found.location:
        response["Location"] = found.location
    return response


def _refused(reason: str) -> JsonResponse:
    problem = {"field": HEADER, "reason": reason}
    return JsonResponse(problem, status=HTTPStatus.UNPROCESSABLE_ENTITY)


def _digest(request: HttpRequest) -> str:
    """What tells a request from others; raises `RequestDataTooBig`."""
    return hashlib.sha256(request.path.encode() + b"\0" + request.body).hexdigest()

"""Answers 503 while the database, the disk or Redis fails; any other exception stays a 500.

Django calls `server_error` for every exception that nobody caught, in views and in middleware.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import sys
from http import HTTPStatus

import redis
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views import defaults

log = logging.getLogger(__name__)

RETRY_AFTER_S = 30
_FULL = "the site's disk is full"
_AWAY = "the database isn't responding"
_REDIS = "Redis, which holds the site's jobs, isn't accepting anything right now"
_SQLITE = {
    sqlite3.SQLITE_FULL: _FULL,
    # What SQLite says of a full disk when it cannot enlarge the files beside the database.
    sqlite3.SQLITE_IOERR: "the site's disk is full or broken",
    sqlite3.SQLITE_CANTOPEN: "the database cannot be opened",
    sqlite3.SQLITE_READONLY: "the database cannot be written to",
    sqlite3.SQLITE_BUSY: "the database is busy",
    sqlite3.SQLITE_LOCKED: "the database is busy",
}
"""Primary result codes that say nothing against our statement, such as an unknown table would."""
_POSTGRESQL_DISK_FULL = "53100"
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer what ended in an exception: 503 if it can be tried again later, else 500."""
    error = sys.exc_info()[1]
    why = what_fails(error) if error is not None else ""
    response = _later(request, why) if why else _our_mistake(request)
    if why:
        detail = " ".join(str(error).split())
        log.error("%s %r answered 503: %s (%s)", request.method, request.path, why, detail)
    return response


def _later(request: HttpRequest, why: str) -> HttpResponse:
    if _is_api(request):
        response: HttpResponse = _json(f"{why}; send it again in {RETRY_AFTER_S} s", 503)
    else:
        page = render_to_string("503.html", {"why": why, "retry_s": RETRY_AFTER_S})
        response = HttpResponse(page, status=503)
    response["Retry-After"] = str(RETRY_AFTER_S)
    return response


def _our_mistake(request: HttpRequest) -> HttpResponse:
    if _is_api(request):
        return _json("something went wrong in kbench; the site's log has the details", 500)
    return defaults.server_error(request)


class Not503(logging.Filter):
    """Drops what Django logs of such an answer: a second line, and a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it."""
        return getattr(record, "status_code", None) != HTTPStatus.SERVICE_UNAVAILABLE


def what_fails(error: BaseException) -> str:
    """Which part of the site fails, for people; empty if the exception is a mistake of ours."""
    match error:
        case OperationalError() | InterfaceError():
            return _database_fault(error.__cause__)
        case redis.ConnectionError() | redis.TimeoutError():
            return _REDIS
        case redis.OutOfMemoryError() | redis.ReadOnlyError():
            return _REDIS
        case redis.ResponseError() if str(error).startswith("MISCONF"):
            return _REDIS
        case OSError() if error.errno in _DISK_ERRORS:
            return _FULL
    return ""


def _database_fault(cause: BaseException | None) -> str:
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)  # unset where Python itself refuses
        return _SQLITE.get(code & 0xFF, "")
    return _FULL if getattr(cause, "sqlstate", None) == _POSTGRESQL_DISK_FULL else _AWAY


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def _json(reason: str, status: int) -> JsonResponse:
    return JsonResponse({"field": "", "reason": reason}, status=status)


_STRANGE = "django.security."


class BriefFilter(logging.Filter):
    """Keeps the log short where anybody can make it long: by a wrong host or too many fields."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop the traceback of a request that Django refused as suspicious."""
        if record.name.startswith(_STRANGE):
            record.exc_info = record.exc_text = None
        return True

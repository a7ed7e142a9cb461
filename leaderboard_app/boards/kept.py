"""Answers about whole boards that are kept for a while, where there is a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from django.core.cache import cache

from runs_app.work import withdrawn

KEPT_S = 300
"""So long an answer is shown; usual ones are made again before that (`ahead`)."""

_again: ContextVar[bool] = ContextVar("_again", default=False)

T = TypeVar("T")


def kept(name: str, find: Callable[[], T], worth: Callable[[T], bool] = lambda _: True) -> T:
    """What is kept under this name, else what is found: that is kept if it is worth it.

    Nothing is shown from before something was withdrawn.
    """
    key = f"boards:{withdrawn.latest()}:{name}"
    known: T | None = None if _again.get() else cache.get(key)
    if known is not None:
        return known
    found = find()
    if worth(found):
        cache.set(key, found, timeout=KEPT_S)
    return found


@contextmanager
def made_again() -> Iterator[None]:
    """Within it all is found anew, and kept from then on."""
    token = _again.set(True)
    try:
        yield
    finally:
        _again.reset(token)

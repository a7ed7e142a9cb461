"""Answers about whole boards that are kept for a while, where there is a cache."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import time
from typing import TypeVar

from django.core.cache import cache
from django.db import connections

from runs_app.work import withdrawn

KEPT_S = 30
"""So long an answer is shown as it is."""
STALE_S = 300
"""So much longer it is shown while it is made anew: nobody waits for what others have seen."""
_MAKING_S = 60
"""After so long somebody else makes it: who was at it has ended or takes too long."""

log = logging.getLogger(__name__)

_maker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="boards")

T = TypeVar("T")


def kept(
    name: str,
    find: Callable[[], T],
    seconds: int = KEPT_S,
    worth: Callable[[T], bool] = lambda _: True,
) -> T:
    """What is kept under this name, else what is found: that is kept if it is worth it.

    Who finds it older than `seconds` still gets it, and has it made anew beside the answer. Nothing
    is shown from before something was withdrawn.
    """
    key = f"boards:{withdrawn.latest()}:{name}"
    known: tuple[float, T] | None = cache.get(key)
    if known is None:
        return _made(key, find, seconds, worth)
    if time() - known[0] > seconds and cache.add(f"{key}:making", 1, timeout=_MAKING_S):
        beside(lambda: _made(key, find, seconds, worth))
    return known[1]


def _made(key: str, find: Callable[[], T], seconds: int, worth: Callable[[T], bool]) -> T:
    began, found = time(), find()
    if worth(found):
        cache.set(key, (began, found), timeout=seconds + STALE_S)
        cache.delete(f"{key}:making")
    return found


def beside(work: Callable[[], object]) -> None:
    """Do some work in the thread that does one after another, with connections of its own."""

    def done() -> None:
        try:
            work()
        except Exception:  # nobody waits for it; until it can be made the old answer is shown
            log.exception("an answer about a board was not made anew")
        finally:
            connections.close_all()

    _maker.submit(done)

"""What the texts of a draft must be to be kept, and why a user can't begin another draft."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.kbench import SPECIFICATION, parse_specification
from gpu_runner.data.formats.text import check_files, plain
from tasks_app.disclosure import sees_hidden
from tasks_app.errors import CurationError
from tasks_app.models import Draft, TaskVersion
from tasks_app.publishing.snapshots import names_kept_from

PATH_LIMIT = 200
"""Characters of a path: well below what a file system takes."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def kept_files(files: Mapping[str, str]) -> dict[str, str]:
    """The texts as they are stored: sorted by path, with LF at the ends of lines.

    What they say may be wrong in any way, but raises `CurationError` for paths and sizes that no
    task may have.
    """
    kept = {path: plain(files[path]) for path in sorted(files)}
    if not kept:
        raise CurationError("files", f"a task needs at least {SPECIFICATION}")
    try:
        check_files(kept.items())
    except DataError as error:
        raise CurationError(error.field, error.reason) from None
    folders = {parent for path in kept for parent in _parents(path)}
    for path, text in kept.items():
        if len(path) > PATH_LIMIT:
            raise CurationError(f"files.{path[:40]}…", f"is longer than {PATH_LIMIT} characters")
        if path in folders:
            raise CurationError(f"files.{path}", "is both a file and a folder")
        if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
            raise CurationError(f"files.{path}", "is not UTF-8 text")
    return kept


def said_name(files: Mapping[str, str]) -> str:
    """The name in task.toml, be the rest wrong; empty if it is none that a task may have."""
    try:
        name = parse_specification(files.get(SPECIFICATION, ""), SPECIFICATION).get("name")
    except DataError:
        return ""
    return name if isinstance(name, str) and _NAME.fullmatch(name) else ""


def changed_paths(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Paths of the texts that were added, removed or changed."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _parents(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


_NEW_A_DAY = 4  # times as many as may be open: closed ones are kept


def free_name(name: str, author: User) -> str:
    """The name, with the first number that makes it unlike all tasks and the author's drafts."""
    tasks = names_kept_from(author.pk).filter(slug__startswith=name)
    drafts = Draft.objects.filter(author=author, name__startswith=name, state__in=Draft.UNDER_WAY)
    taken = {*tasks.values_list("slug", flat=True), *drafts.values_list("name", flat=True)}
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in taken)


def limit_refusal(user: User, now: datetime) -> str:
    """Why `user` may not begin another draft now; empty if they may.

    Drafts that an admin has taken over do not count: their author cannot close them.
    """
    if sees_hidden(user):
        return ""
    limit = settings.MAX_OPEN_DRAFTS_PER_USER
    own = Draft.objects.filter(author=user)
    count = own.filter(state__in=Draft.UNDER_WAY, taken_by=None).count()
    if count >= limit:
        reason = f"you have {count} drafts that are open or in review; the limit is {limit}"
        return f"{reason}: close one first"
    if own.filter(created_at__gt=now - timedelta(days=1)).count() >= limit * _NEW_A_DAY:
        reason = f"you have made {limit * _NEW_A_DAY} drafts in the last 24 hours, the daily limit"
        return f"{reason}: continue an open one, or come back later"
    return ""


def overtaken_by(draft: Draft) -> TaskVersion | None:
    """The task's public version, if another one was public when the draft was begun.

    What that version changed is undone by the draft, unless it has it too.
    """
    task = draft.task
    public = task.current_version if task is not None else None
    if public is None or public.pk == draft.version_id or draft.state not in Draft.UNDER_WAY:
        return None
    return public if draft.base_version_id not in (None, public.pk) else None

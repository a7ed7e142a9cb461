"""Which tests PostgreSQL has to run: the fewest that send every kind of statement to a database.

As a plugin (`-p tests.statements`) with `--record-statements=FILE` it notes what each test sends to
SQLite; with `--cover-statements=FILE` it chooses from that. A kind is a statement without its
values, with what is special about them, and with the error that it ended in. Of a plain statement,
which only compares, sorts and stores columns, each part is a kind: how parts are combined is the
same SQL to both. Tests of real transactions always run, and so do those that the file does not
know.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

LEAST_S = 0.05
"""What each test costs beside its own time."""
_VALUES = re.compile(r"\(?%s\)?(, \(?%s\)?)*")
_NUMBER = re.compile(r"\b\d+\b")
_SAVEPOINT = re.compile(r"s\d+_x\d+")
_QUOTED = re.compile(r'"\w+"|%s')
_PLAIN = re.compile(
    r"(?:SELECT|INSERT INTO|VALUES|RETURNING|UPDATE|SET|DELETE FROM|FROM|INNER JOIN|LEFT OUTER JOIN"
    r"|ON|WHERE|AND|OR|NOT|IN|IS|NULL|LIKE|ESCAPE '\\'|ORDER BY|ASC|DESC|LIMIT|OFFSET|AS|T\d"
    r"|COUNT\(\*\)|[<>=.,()\d\s])*"
)
_PART = re.compile(
    r'(?:INSERT INTO|UPDATE|FROM|JOIN) "\w+"'
    r'|"\w+"(?:\."\w+")? (?:[<>=]+|IN|IS|LIKE|ASC|DESC)(?: \(?%s| NOT NULL| NULL| "\w+"\."\w+")?'
    r"|COUNT\(\*\)"
)
_CHANGED = re.compile(r'UPDATE "\w+" ')
_ODD = frozenset(("large", "infinite", "odd", "long"))
_INTEGER = 1 << 31
_LONG = 200


def kind_of(statement: str, values: object, error: str = "") -> str:
    """A statement without its values, and what PostgreSQL could mind of those."""
    special = sorted({word for value in _each(values) if (word := _special(value))})
    return " ".join([_text(statement), *special, error])


def kinds_of(statement: str, values: object, error: str = "") -> tuple[str, ...]:
    """The kind of a statement or, if it is plain and no value is odd, those of its parts."""
    odd = _ODD.intersection(" ".join(map(_special, _each(values))).split())
    return (() if odd or error else _parts(_text(statement))) or (
        kind_of(statement, values, error),
    )


@functools.lru_cache(10_000)
def _parts(text: str) -> tuple[str, ...]:
    """What a plain statement is made of; nothing of another one."""
    if "(SELECT" in text or not _PLAIN.fullmatch(_QUOTED.sub("", text)):
        return ()
    changed = _CHANGED.match(text)  # whose columns stand there without their table
    table = changed[0] if changed else ""
    return tuple(f"{table}{part}" for part in _PART.findall(text))


@functools.lru_cache(10_000)
def _text(statement: str) -> str:
    return _NUMBER.sub("0", _VALUES.sub("%s", _SAVEPOINT.sub("savepoint", statement)))


@functools.cache
def _short(kind: str) -> str:
    return hashlib.blake2b(kind.encode(errors="replace"), digest_size=8).hexdigest()


def _each(values: object) -> Iterator[object]:
    if isinstance(values, Mapping):
        yield from values.values()
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _each(value)
    else:
        yield values


def _special(value: object) -> str:
    match value:
        case bool() | None:
            return "null" if value is None else ""
        case int():
            return "" if abs(value) < _INTEGER else "large"
        case float():
            return "" if math.isfinite(value) else "infinite"
        case str():
            odd = "odd " if any(ord(c) == 0 or 0xD800 <= ord(c) <= 0xDFFF for c in value) else ""
            return odd + ("long" if len(value) > _LONG else "")
    return type(value).__name__


@dataclass
class Sent:
    """What one test has sent, and how long it took."""

    kinds: set[str] = field(default_factory=set)
    seconds: float = 0.0


def chosen(sent: Mapping[str, Sent]) -> set[str]:
    """The tests that together send every kind, cheapest for what they add; of equals the first."""
    left = set().union(*(test.kinds for test in sent.values()))
    names: set[str] = set()
    waiting = [(-math.inf, name) for name in sorted(sent)]  # what a test adds only ever falls
    while left:
        _, name = heapq.heappop(waiting)
        adds = len(sent[name].kinds & left) / (LEAST_S + sent[name].seconds)
        if waiting and (-adds, name) > waiting[0]:
            heapq.heappush(waiting, (-adds, name))
        else:
            names.add(name)
            left -= sent[name].kinds
    return names


class Recorder:
    """Notes the kinds of statements of each test, and writes them down at the end."""

    def __init__(self, path: Path) -> None:
        """Watch every statement of this process from now on."""
        from django.db.backends.utils import CursorWrapper
        from django.db.models import QuerySet

        self._path = path
        self._sent: dict[str, Sent] = {}
        self._now = Sent()
        for name in ("execute", "executemany"):
            setattr(CursorWrapper, name, self._watched(getattr(CursorWrapper, name)))
        lock = QuerySet.select_for_update

        @functools.wraps(lock)
        def select_for_update(rows: Any, *arguments: Any, **options: Any) -> Any:
            # SQLite is not told of it.
            self._now.kinds.add(f"locks {rows.model.__name__} {arguments} {options}")
            return lock(rows, *arguments, **options)

        QuerySet.select_for_update = select_for_update  # type: ignore[method-assign]

    def _watched(self, execute: Any) -> Any:
        @functools.wraps(execute)
        def watched(cursor: Any, sql: Any, params: Any = None) -> Any:
            error = ""
            try:
                return execute(cursor, sql, params)
            except Exception as raised:
                error = type(raised).__name__
                raise
            finally:
                self._now.kinds.update(map(_short, kinds_of(str(sql), params, error)))

        return watched

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Collect what is sent while a test runs, its fixtures included."""
        self._now = self._sent[item.nodeid] = Sent()
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._now.seconds = time.monotonic() - began

    def pytest_sessionfinish(self) -> None:
        """Write it down."""
        document = {name: [each.seconds, *sorted(each.kinds)] for name, each in self._sent.items()}
        self._path.write_text(json.dumps(document))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two options."""
    for name in ("record", "cover"):
        parser.addoption(f"--{name}-statements", type=Path, metavar="FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Record, if asked to."""
    path = config.getoption("record_statements")
    if path is not None:
        config.pluginmanager.register(Recorder(path))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what sends nothing that another test does not send, if asked to."""
    path: Path | None = config.getoption("cover_statements")
    if path is None or not path.exists():
        return
    read: dict[str, Sequence[Any]] = json.loads(path.read_text())
    sent = {name: Sent(set(kinds), seconds) for name, (seconds, *kinds) in read.items()}
    needed = chosen(sent)
    out = [item for item in items if item.nodeid in sent.keys() - needed and not _commits(item)]
    config.hook.pytest_deselected(items=out)
    left_out = {*map(id, out)}
    items[:] = [item for item in items if id(item) not in left_out]


def _commits(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("django_db")
    return mark is not None and bool(mark.kwargs.get("transaction"))

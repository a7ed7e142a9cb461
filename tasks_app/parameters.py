"""Parameters in addresses of pages: which there may be, filters, and addresses with other ones.

`kbench_web.parameters` refuses those that a page does not name.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from django.http import QueryDict

_LONGEST = 100  # characters of a filter
_MOST_NAMED = 20  # chosen: a line or two of names

View = TypeVar("View", bound=Callable[..., object])


def takes(*names: str) -> Callable[[View], View]:
    """Name the parameters of a page. One without this knows none."""

    def decorate(view: View) -> View:
        view.parameters = names  # type: ignore[attr-defined]  # functions have a place for it
        return view

    return decorate


def takes_uploads(view: View) -> View:
    """Mark a page on which people upload tasks: `kbench_web.rate_limit` counts how often."""
    view.takes_uploads = True  # type: ignore[attr-defined]  # as above
    return view


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A filter with its options, each a value and words."""

    name: str
    label: str
    value: str
    options: tuple[tuple[str, str], ...]


def read_filters(values: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """What stands in the address, cut to a length that a filter may have."""
    return {name: values.get(name, "").strip()[:_LONGEST] for name in names}


def query_of(filters: Mapping[str, str]) -> str:
    """The query string of these filters, without the empty ones."""
    return urlencode({name: value for name, value in filters.items() if value})


def address(query: QueryDict, **changes: str | list[str] | None) -> str:
    """The query string with some parameters set anew; None takes one out."""
    changed = query.copy()
    for name, value in changes.items():
        values = [] if value is None else [value] if isinstance(value, str) else value
        changed.setlist(name, values)
    return changed.urlencode()


def named_like(value: str, allowed: Collection[str]) -> str:
    """What could have been meant: all, or where they are too many the names most like it."""
    if len(allowed) <= _MOST_NAMED:
        return f"known: {', '.join(allowed) or 'none yet'}"
    near = difflib.get_close_matches(value[:_LONGEST], allowed)
    return f"like it: {', '.join(near)}" if near else f"none of {len(allowed)} has a similar name"

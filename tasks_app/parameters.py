"""Parameters in addresses of pages: which there may be, and addresses with other ones.

`kbench_web.parameters` refuses those that a page does not name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.http import QueryDict

View = TypeVar("View", bound=Callable[..., object])


def takes(*names: str) -> Callable[[View], View]:
    """Name the parameters of a page. One without this knows none."""

    def decorate(view: View) -> View:
        view.parameters = names  # type: ignore[attr-defined]  # functions have a place for it
        return view

    return decorate


def address(query: QueryDict, **changes: str | list[str] | None) -> str:
    """The query string with some parameters set anew; None takes one out."""
    changed = query.copy()
    for name, value in changes.items():
        values = [] if value is None else [value] if isinstance(value, str) else value
        changed.setlist(name, values)
    return changed.urlencode()

"""Which parameters the address of a page may have; `kbench_web.parameters` refuses others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

View = TypeVar("View", bound=Callable[..., object])


def takes(*names: str) -> Callable[[View], View]:
    """Name the parameters of a page. One without this knows none."""

    def decorate(view: View) -> View:
        view.parameters = names  # type: ignore[attr-defined]  # functions have a place for it
        return view

    return decorate

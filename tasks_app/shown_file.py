"""A file of a kernel as pages show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ShownFile:
    """One file of a submission; `anchor`, a hyphen and a number name a line of it on the page."""

    name: str
    text: str
    language: str
    anchor: str

"""The client: kbench from the command line, from scripts and from agents; no Django, no torch."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Version of this installation; empty where it is not installed."""
    try:
        return metadata.version("kbench")
    except metadata.PackageNotFoundError:
        return ""

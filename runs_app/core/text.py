"""What the database and a log can hold of strangers' text."""

from __future__ import annotations

from typing import Any


def storable(value: Any) -> Any:
    """Copy of a JSON value without what PostgreSQL cannot hold: NUL and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {storable(key): storable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [storable(entry) for entry in value]
    return value


def printable(text: str) -> str:
    """The text without line breaks and control characters, for a line of a log."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)

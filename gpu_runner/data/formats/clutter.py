"""What systems and people leave beside a task's texts, and no task has."""

from __future__ import annotations

from pathlib import PurePosixPath

_FOLDERS = frozenset(
    {"__pycache__", "__macosx", "$recycle.bin", "system volume information", "@eadir"}
)
_NAMES = frozenset({"thumbs.db", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini", "icon\r"})
_SUFFIXES = frozenset(
    {
        *(".bmp", ".gif", ".heic", ".ico", ".jpeg", ".jpg", ".pdf", ".png", ".tif", ".tiff"),
        *(".webp", ".lnk", ".pyc", ".pyo"),
    }
)
"""Of pictures, Windows' links and what Python compiles: no text, so no part of a task."""


def is_clutter(path: str) -> bool:
    """Whether a path with slashes leads to such a file: hidden, a system's, a picture, a cache."""
    *folders, name = path.casefold().split("/")
    hidden = any(part.startswith(".") for part in (*folders, name))
    kept_apart = not _FOLDERS.isdisjoint((*folders, name))
    return hidden or kept_apart or name in _NAMES or PurePosixPath(name).suffix in _SUFFIXES

"""Names and titles for tasks of formats that have none: from their files' names."""

from __future__ import annotations

import re
from pathlib import Path

_NUMBERED = re.compile(r"task_?\d+", re.IGNORECASE)
_LEVEL = re.compile(r"level_?\d+", re.IGNORECASE)
NAME_LIMIT = 80  # of a task's name, as `task_errors` has it


def task_name(path: Path) -> str:
    """A task's name from its path: lower case, with the level's folder in front if there is one."""
    path = path.resolve()
    stem = path.stem if path.is_file() else path.name
    parts = [path.parent.name, stem] if _LEVEL.fullmatch(path.parent.name) else [stem]
    return "-".join(map(plain_name, parts))[:NAME_LIMIT] or "task"


def naming_folder(path: Path) -> Path:
    """The folder around a file, or around its level, which is in the task's name already."""
    return path.parent.parent if _LEVEL.fullmatch(path.parent.name) else path.parent


def name_by_folder(name: str, path: Path) -> str:
    """A task's name with the folder's in front, where several files of an import have one name."""
    return f"{plain_name(naming_folder(path).name)}-{name}"[:NAME_LIMIT]


def plain_name(part: str) -> str:
    """As much of a name as a site's task may have: lower case, digits and underscores."""
    return re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_")


def task_title(path: Path) -> str:
    """A readable title; a folder `task_12` takes it from the numbered file that lies in it."""
    path = path.resolve()
    stem = path.stem if path.is_file() else path.name
    if path.is_dir() and _NUMBERED.fullmatch(path.name):
        numbered = sorted(path.glob("[0-9]*_*.py"))
        stem = numbered[0].stem if numbered else stem
    words = re.sub(r"^\d+_", "", stem).replace("_", " ").split()
    text = " ".join(words) or stem
    return text[0].upper() + text[1:]

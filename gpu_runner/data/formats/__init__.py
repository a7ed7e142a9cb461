"""Reads tasks from files without importing a line of them, and writes them as text."""

from __future__ import annotations

from gpu_runner.data.formats.folder import Fault, read_folder
from gpu_runner.data.formats.kbench import specifications
from gpu_runner.data.formats.load import (
    FORMATS,
    built_in_tasks,
    catalog_folder,
    catalog_specifications,
    find_task,
    load_task,
    read_task,
)

__all__ = [
    "FORMATS",
    "Fault",
    "built_in_tasks",
    "catalog_folder",
    "catalog_specifications",
    "find_task",
    "load_task",
    "read_folder",
    "read_task",
    "specifications",
]

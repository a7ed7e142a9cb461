"""Read tasks from files without importing a line of them; standard library only."""

from __future__ import annotations

from gpu_runner.data.formats.load import FORMATS, catalog_folder, find_task, load_task

__all__ = ["FORMATS", "catalog_folder", "find_task", "load_task"]

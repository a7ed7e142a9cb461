"""Finds the chart library's browser script in the installed package, so that no copy is kept."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import plotly
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

_NAME = "plotly.min.js"


class PlotlyFinder(BaseFinder):
    """Offers `plotly/plotly.min.js`, and nothing else of the package."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Point at the package's folder of browser files."""
        self.storage = FileSystemStorage(Path(plotly.__file__).parent / "package_data")
        self.storage.prefix = "plotly"  # type: ignore[attr-defined]
        super().__init__(*args, **kwargs)

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        """Absolute path of the script, or nothing."""
        found = self.storage.path(_NAME) if path == f"plotly/{_NAME}" else None
        if find_all:
            return [found] if found else []
        return found or []

    def list(self, ignore_patterns: Any) -> Iterable[Any]:
        """The one file, for collectstatic."""
        yield _NAME, self.storage

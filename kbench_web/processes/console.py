"""One readable log out of the output of many programs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import datetime
from typing import TextIO

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)  # ANSI foregrounds, none of them red


def _now() -> datetime:
    return datetime.now().astimezone()


class Console:
    """Prints whole lines as `time name | text`, each name in a colour of its own on a terminal."""

    def __init__(self, out: TextIO, names: list[str], clock: Callable[[], datetime] = _now) -> None:
        """Print to `out`; `names` are all that will be used, so that columns fit."""
        self._out = out
        self._clock = clock
        self._width = max(map(len, names))
        self._colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
        self._coloured = out.isatty() and "NO_COLOR" not in os.environ
        self._lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        """Print one line of the program `name`."""
        label = f"{self._clock():%H:%M:%S} {name:<{self._width}} |"
        if self._coloured:
            label = f"\033[{self._colours.get(name, 0)}m{label}\033[0m"
        with self._lock:
            self._out.write(f"{label} {text}\n")
            self._out.flush()

"""What runs a runner process under another program, such as a profiler or a sanitizer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, Self

from gpu_runner.supervisor.host.jail import Jail


class Wrapper(Protocol):
    """Changes a runner's command line and jail; its report leaves through `descriptor`."""

    @property
    def descriptor(self) -> int:
        """Open for writing; the process inherits it beside the runner's own."""

    def command(self, program: Sequence[str]) -> list[str]:
        """The command line that runs `program` under the tool."""

    def jail(self, jail: Jail) -> Jail:
        """The same jail with what the tool needs in it."""


class Report:
    """The text that a tool writes to `descriptor`. Use as a context manager."""

    def __init__(self, limit_bytes: int) -> None:
        """Of a longer one the beginning is read."""
        self._limit_bytes = limit_bytes
        self.descriptor = os.memfd_create("kbench-report")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Forget the report."""
        os.close(self.descriptor)

    def report(self) -> str:
        """What the tool wrote; call it when the process has ended."""
        return os.pread(self.descriptor, self._limit_bytes, 0).decode(errors="replace")

"""What runs a runner process under another program, such as a profiler or a sanitizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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

"""What an audit tells those who want to use a kernel; none of it bars one or moves its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.codec import DataError

NAMES = ("same_bits", "graph", "scratch_bytes", "energy_joules")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Four facts about a kernel's calls; None is a fact that was not measured.

    same_bits: calls with the same inputs gave the same bits. graph: a call was recorded as a CUDA
    graph, and outputs of its replay were right. scratch_bytes: the most memory that a call took
    besides its inputs and outputs, what it keeps for later calls included. energy_joules: of the
    whole device for a call, idle power included; energy_error: relative, by the counter's steps.
    said: by a fact's name how it was measured, or why it was not. workload: on which memory and
    energy were measured.
    """

    same_bits: bool | None = None
    graph: bool | None = None
    scratch_bytes: int | None = None
    energy_joules: float | None = None
    energy_error: float | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    workload: str = ""

    def __post_init__(self) -> None:
        """Refuse impossible amounts, an energy without its error, and facts that there are not."""
        if (self.energy_joules is None) != (self.energy_error is None):
            raise DataError("energy_error", "must be given if and only if there is an energy")
        for name in ("scratch_bytes", "energy_joules", "energy_error"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise DataError(name, "must be a finite number of at least 0")
        if unknown := sorted(set(self.said) - set(NAMES)):
            raise DataError(f"said.{unknown[0]}", f"is not one of {', '.join(NAMES)}")

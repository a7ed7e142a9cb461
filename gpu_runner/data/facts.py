"""What an audit tells those who want to use a kernel; none of it bars one or moves its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_runner.data.codec import DataError
from gpu_runner.data.numbers import plus_minus, scaled

NAMES = ("same_bits", "batch_bits", "graph", "scratch_bytes", "energy_joules")

_BYTES = ((1.0, "B"), (2.0**10, "KiB"), (2.0**20, "MiB"), (2.0**30, "GiB"))
_JOULES = ((1e-9, "nJ"), (1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J"))
_NOT_MEASURED = "not measured"


@dataclass(frozen=True, kw_only=True)
class FactRow:
    """A fact in words; `said`: how it was measured, or why it was not."""

    label: str
    value: str
    said: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known about a kernel's calls; None is a fact that was not measured.

    same_bits: calls with the same inputs gave the same bits. batch_bits: the first items of a batch
    alone gave the same bits as in the whole batch. graph: a call was recorded as a CUDA graph, and
    outputs of its replay were right. scratch_bytes: the most memory that a call took besides its
    inputs and outputs, what it keeps for later calls included. energy_joules: of the whole device
    for a call, idle power included; energy_error: relative, by the counter's steps. said: by a
    fact's name how it was measured, or why it was not. workload: on which memory and energy were
    measured.
    """

    same_bits: bool | None = None
    batch_bits: bool | None = None
    graph: bool | None = None
    scratch_bytes: int | None = None
    energy_joules: float | None = None
    energy_error: float | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    workload: str = ""

    def __post_init__(self) -> None:
        """Refuse impossible amounts, an energy without its error, and facts that there are not."""
        if (self.energy_joules is None) != (self.energy_error is None):
            raise DataError("energy_error", "must be set if and only if there is an energy")
        for name in ("scratch_bytes", "energy_joules", "energy_error"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise DataError(name, "must be a finite number, 0 or more")
        if unknown := sorted(set(self.said) - set(NAMES)):
            raise DataError(f"said.{unknown[0]}", f"is not one of {', '.join(NAMES)}")

    @property
    def rows(self) -> tuple[FactRow, ...]:
        """The facts in words, in the order in which pages show them."""
        on = f" on {self.workload}" if self.workload else ""
        energy = _amount(self.energy_joules, _JOULES)
        if self.energy_error is not None:
            energy += f" {plus_minus(self.energy_error)}"
        told = {
            "same_bits": ("Same bits for the same input", _yes(self.same_bits)),
            "batch_bits": ("Same bits in a smaller batch", _yes(self.batch_bits)),
            "graph": ("Works in a CUDA graph", _yes(self.graph)),
            "scratch_bytes": (f"Scratch memory{on}", _amount(self.scratch_bytes, _BYTES)),
            "energy_joules": (f"Energy per call{on}", energy),
        }
        return tuple(
            FactRow(label=label, value=value, said=self.said.get(name, ""))
            for name, (label, value) in told.items()
        )


def _yes(fact: bool | None) -> str:  # noqa: FBT001
    return {None: _NOT_MEASURED, True: "yes", False: "no"}[fact]


def _amount(value: float | None, scale: tuple[tuple[float, str], ...]) -> str:
    if value is None:
        return _NOT_MEASURED
    return " ".join(scaled(value, scale)) if value else "none"

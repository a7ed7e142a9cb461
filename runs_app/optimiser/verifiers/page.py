"""What the pages about verifiers show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs_app.models import Tuning, VerifierPrompt
from runs_app.optimiser.verifiers.calibration import MOST_CANDIDATES, Verification

Generation = Mapping[str, object]
"""A generation of prompts, as its tuning stores it."""


@dataclass(frozen=True, kw_only=True)
class TuningRow:
    """A tuning with its first generation and the one that was chosen."""

    tuning: Tuning
    first: Generation | None
    chosen: Generation | None


@dataclass(frozen=True, kw_only=True)
class VerifiersPage:
    """All verifiers over the runs that one may see, and the tunings of their prompts."""

    found: Verification
    most: int = MOST_CANDIDATES
    usd_per_hour: float
    usd_saved: float | None
    figure: Mapping[str, object] | None
    prompts: Sequence[tuple[str, VerifierPrompt | None]]
    tunings: Sequence[TuningRow]


@dataclass(frozen=True, kw_only=True)
class TuningPage(TuningRow):
    """One tuning; `silent` if it neither ended nor goes on."""

    generations: Sequence[Generation]
    figure: Mapping[str, object] | None
    prompts: Iterable[VerifierPrompt]
    examples: Sequence[tuple[str, int, int, int]]
    silent: bool

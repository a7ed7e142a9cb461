"""What the page shows on which an optimization run is started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.forms import BoundField, Form

from runs_app.core.queue.loads import Load
from runs_app.models import LanguageModel
from runs_app.optimiser.evolve.strategies.contract import StrategyInfo
from runs_app.optimiser.selectors.spending import MoneyLimits
from runs_app.optimiser.services.estimate import Estimate


@dataclass(frozen=True)
class StrategyFields:
    """A strategy and the fields of its parameters."""

    info: StrategyInfo
    fields: Sequence[BoundField]


@dataclass(frozen=True, kw_only=True)
class StartPage:
    """The form with everything that can be chosen in it, and what there is to spend."""

    form: Form
    strategies: Sequence[StrategyFields]
    chosen_strategy: str
    language_models: Iterable[LanguageModel]
    chosen_models: Sequence[str]
    chosen_verifiers: Sequence[str]
    queues: Sequence[Load]
    money: MoneyLimits | None
    directions: Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class EstimatePart:
    """What the run would cost, or the `problems` of the form; `command` asks the API for it."""

    host: str
    command: str = ""
    estimate: Estimate | None = None
    problems: Sequence[tuple[str, str, str]] = ()

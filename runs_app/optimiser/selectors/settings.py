"""A run's parameters for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runs_app.models import Run
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.evolve.strategies.contract import with_defaults

OWN_KERNEL = "the starting kernel"
"""Title of a seed kernel that somebody pasted."""

PARAMETERS = {"evaluations": "maximum combinations"}


def parameter_label(name: str) -> str:
    """A strategy's parameter for people; none is called as a part of the budget is."""
    return PARAMETERS.get(name, name.replace("_", " "))


def parameters_of(run: Run, changed: Mapping[str, object] | None = None) -> Mapping[str, object]:
    """The strategy's parameters; today's defaults where an old run stored none.

    `changed` are those that extensions have changed.
    """
    stored: Mapping[str, object] = {**(run.config.get("parameters") or {}), **(changed or {})}
    info = STRATEGIES.get(run.strategy)
    return with_defaults(info, stored) if info else stored


def text(value: Any, nothing: str = "") -> str:
    """A setting's value for people; `nothing` stands for None."""
    if value is None:
        return nothing
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={text(entry)}" for name, entry in sorted(value.items()))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(text(entry) for entry in value)
    return str(value)

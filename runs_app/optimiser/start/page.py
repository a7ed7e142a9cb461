"""What the page shows on which an optimization run is started, and which strategies can run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.forms import BoundField, Form

from gpu_runner.data.verdict import Direction
from runs_app.core.errors import SubmissionError
from runs_app.core.queue.devices import devices
from runs_app.core.queue.loads import Load
from runs_app.models import LanguageModel
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.evolve.strategies.contract import StrategyInfo
from runs_app.optimiser.selectors.spending import MoneyLimits
from runs_app.optimiser.services.estimate import Estimate
from runs_app.optimiser.services.problem import seed_for
from runs_app.optimiser.services.request import RunRequest
from runs_app.optimiser.start.parameters import NO_MODELS, field_name
from tasks_app.people import Viewer
from tasks_app.selectors import find_task

_NEEDS_MODELS = f"Needs a language model; {NO_MODELS}."


@dataclass(frozen=True)
class StrategyFields:
    """A strategy and the fields of its parameters; `blocked`: why it can't run."""

    info: StrategyInfo
    fields: Sequence[BoundField]
    blocked: str


@dataclass(frozen=True)
class Strategies:
    """All of them, and which is chosen; empty if none is."""

    rows: Sequence[StrategyFields]
    chosen: str


@dataclass(frozen=True, kw_only=True)
class StartPage:
    """The form with everything that can be chosen in it, and what there is to spend."""

    form: Form
    strategies: Strategies
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
    strategies: Strategies
    command: str = ""
    estimate: Estimate | None = None
    problems: Sequence[tuple[str, str, str]] = ()


def strategies(form: Form, user: Viewer, *, has_models: bool) -> Strategies:
    """Those of a form; without a choice the first that can run, rather one without models.

    Nobody's choice is taken back: a kernel may lack its knobs only while somebody types it.
    """
    rows = [
        StrategyFields(
            info,
            [form[field_name(name, parameter)] for parameter in info.help],
            _NEEDS_MODELS if info.needs_models and not has_models else _blocked(form, info, user),
        )
        for name, info in STRATEGIES.items()
    ]
    able = sorted((row for row in rows if not row.blocked), key=lambda row: row.info.needs_models)
    usual = able[0].info.name if able and not form.is_bound else ""
    return Strategies(rows, form["strategy"].value() or usual)


def _blocked(form: Form, info: StrategyInfo, user: Viewer) -> str:
    """Why a strategy can't run with the chosen seed; empty if nothing is known."""
    if info.needs_seed and form["seed_kernel"].value() == "none":
        return "Needs a seed kernel."
    source = _seed_source(form, info, user) if info.refusal else ""
    reason = info.refusal(source) if info.refusal and source.strip() else ""
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


def _seed_source(form: Form, info: StrategyInfo, user: Viewer) -> str:
    """The kernel that the run would begin with; empty if the form doesn't say yet."""
    seed = form["seed_kernel"].value() or ""
    if seed == "own":
        return form["source"].value() or ""
    chosen, slug = form["task"].value(), form["device"].value()
    task = find_task(chosen) if chosen else None
    device = devices().filter(**{"slug": slug} if slug else {}).first()
    if task is None or task.current_version is None or device is None:
        return ""
    with suppress(SubmissionError, ValueError):  # the form says so beside the field
        request = RunRequest(
            task=task.slug,
            device=device.slug,
            strategy=info.name,
            direction=Direction(form["direction"].value() or Direction.FORWARD),
            seed_kernel=seed,
        )
        owner = user if isinstance(user, User) else None
        return seed_for(request, task.current_version, device, owner).source
    return ""

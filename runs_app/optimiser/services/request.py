"""What somebody asks for who starts a run: read, checked, and turned into the run's config."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpu_runner.data import codec
from gpu_runner.data.characters import bad_character
from gpu_runner.data.codec import DataError
from gpu_runner.data.verdict import Direction
from runs_app.core.errors import SubmissionError
from runs_app.models import LanguageModel, Run, VerifierPrompt
from runs_app.optimiser.evolve.budget import MIN_OUTPUT_TOKENS
from runs_app.optimiser.evolve.config import (
    MOST_ANSWER_TOKENS,
    Budget,
    ModelSpec,
    ProfileMode,
    RunConfig,
    VerifierConfig,
)
from runs_app.optimiser.evolve.strategies import STRATEGIES
from runs_app.optimiser.evolve.strategies.contract import with_defaults
from runs_app.optimiser.selectors.language_models import key_is_set
from runs_app.optimiser.selectors.runs import callable_models
from runs_app.optimiser.services.calls import spec_of
from runs_app.optimiser.services.control import check_budget
from runs_app.optimiser.services.history import budget_of, config_now
from tasks_app.errors import Faults

SEED_KERNELS = ("", "naive", "best", "none", "own")
DEFAULT_BUDGET = Budget(evaluations=60, wall_time_s=3600, usd=2.0)
MOST_AT_ONCE = 16
MOST_SURVIVORS = 1000
SEED_LIMIT = 2**31
HOTTEST = 2.0
NAME_LENGTH = 150
_NEEDED = ("task", "device", "strategy")
_SAME = ("temperatures", "max_tokens", "concurrent_asks", "concurrent_evaluations", "ranks_best")


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A run as the form and the API describe it; every field but four has a sane default.

    seed_kernel: naive, best, own (then `source`, its name `entry` and the `files` beside it, which
        stay as they are), none, or empty: the naive one if there is one,
        but none for `translate`.
    ranks_best: after the search its best are ranked and audited, on top of the caps.
    seed: of the run's randomness; drawn if None. agent: "kbench-<strategy>" if empty.
    """

    task: str
    device: str
    strategy: str
    direction: Direction = Direction.FORWARD
    parameters: Mapping[str, object] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    temperatures: tuple[float, ...] = (0.5, 0.75, 1.0)
    max_tokens: int = 8192
    budget: Budget = DEFAULT_BUDGET
    verifiers: VerifierConfig = field(default_factory=VerifierConfig)
    profile: ProfileMode = ProfileMode.FILTERED
    concurrent_asks: int = 4
    concurrent_evaluations: int = 4
    seed_kernel: str = ""
    source: str = ""
    entry: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    agent: str = ""
    name: str = ""
    private: bool = False
    enters_best: bool = False
    ranks_best: bool = True


def read_run_request(document: Mapping[str, object], faults: Faults | None = None) -> RunRequest:
    """The request of a JSON document; raises `SubmissionError` naming all wrong fields.

    With `faults` they go there instead, and have their defaults: more may be wrong.
    """
    try:
        return codec.decode(RunRequest, document)
    except DataError as error:
        refusal = SubmissionError.about(error)
    wrong = {re.split(r"[.\[]", field)[0] for field, _ in refusal.every}
    if faults is None or not wrong.isdisjoint(_NEEDED):
        raise refusal
    faults.found.append(refusal)
    return codec.decode(RunRequest, {n: v for n, v in document.items() if n not in wrong})


def config_for(request: RunRequest) -> RunConfig:
    """How the run is to go, with the prices and the prompts of now.

    Raises `SubmissionError` naming all wrong fields.
    """
    faults = Faults()
    _check(faults, request)
    names = dict.fromkeys(request.models)
    models = [faults.of(_spec, "models", name) for name in names]
    judge = request.verifiers.model
    if judge and judge not in names:
        models.append(faults.of(_spec, "verifiers.model", judge, writes=False))
    parameters = faults.of(_parameters, request)
    faults.tell(SubmissionError)
    assert parameters is not None  # else it was told
    try:
        return RunConfig(
            strategy=request.strategy,
            seed=secrets.randbelow(SEED_LIMIT) if request.seed is None else request.seed,
            parameters=parameters,
            models=tuple(model for model in models if model),
            budget=_budget(request, models),
            verifiers=replace(request.verifiers, prompts=_prompts(request.verifiers)),
            profile=request.profile,
            **{name: getattr(request, name) for name in _SAME},
        )
    except DataError as error:
        raise SubmissionError.about(error) from None


def _budget(request: RunRequest, models: Iterable[ModelSpec | None]) -> Budget:
    """The caps; without a price, the usual cap on money says nothing, so it is left out."""
    is_usual = request.budget is DEFAULT_BUDGET
    if is_usual and any(model and not model.is_priced for model in models):
        return replace(DEFAULT_BUDGET, usd=None)
    return request.budget


def _parameters(request: RunRequest) -> Mapping[str, object]:
    """The strategy's, with its defaults; none for a strategy that there isn't."""
    info = STRATEGIES.get(request.strategy)
    try:
        return with_defaults(info, request.parameters) if info else {}
    except DataError as error:
        raise SubmissionError.about(error) from None


def _check(faults: Faults, request: RunRequest) -> None:
    for name, known in (("strategy", list(STRATEGIES)), ("seed_kernel", SEED_KERNELS)):
        if (value := getattr(request, name)) not in known:
            faults.add(name, f"{value!r} is not one of {', '.join(filter(None, known))}")
    if request.seed_kernel == "own" and not request.source.strip():
        faults.add("source", "is empty: it must contain the run's seed kernel")
    _check_numbers(faults, request)
    for name in ("name", "agent"):
        if reason := bad_character(getattr(request, name)):
            faults.add(name, reason)
    if len(request.name) > NAME_LENGTH:
        faults.add("name", f"has {len(request.name)} characters; the limit is {NAME_LENGTH}")
    faults.of(check_budget, request.budget)


def _check_numbers(faults: Faults, request: RunRequest) -> None:
    if request.seed is not None and not 0 <= request.seed < SEED_LIMIT:
        faults.add("seed", f"must be 0 or more and less than {SEED_LIMIT}")
    for name, value, least, most in (
        ("concurrent_asks", request.concurrent_asks, 1, MOST_AT_ONCE),
        ("concurrent_evaluations", request.concurrent_evaluations, 1, MOST_AT_ONCE),
        ("max_tokens", request.max_tokens, MIN_OUTPUT_TOKENS, MOST_ANSWER_TOKENS),
        ("verifiers.survivors", request.verifiers.survivors, 1, MOST_SURVIVORS),
    ):
        if not least <= value <= most:
            faults.add(name, f"must be from {least} to {most}")
    if not request.temperatures:
        faults.add("temperatures", "must contain at least one value")
    if not all(math.isfinite(t) and 0 <= t <= HOTTEST for t in request.temperatures):
        faults.add("temperatures", f"must each be from 0 to {HOTTEST:g}")


def _spec(field_name: str, name: str, *, writes: bool = True) -> ModelSpec:
    model = LanguageModel.objects.filter(name=name).first()
    if model is None or not model.is_callable:
        have = ", ".join(callable_models().values_list("name", flat=True)) or "none"
        what = "is not known" if model is None else "has no base URL"
        raise SubmissionError(
            field_name,
            f"{name!r} {what}; callable language models: {have}; only admins can add more",
        )
    if key_is_set(model) is False:
        raise SubmissionError(
            field_name,
            f"the key of {name!r} is missing: the environment variable {model.key_variable} is not"
            " set on this host; choose another language model, or ask an admin to set it",
        )
    return replace(spec_of(model), writes=writes)


def _prompts(verifiers: VerifierConfig) -> dict[str, str]:
    """Tuned instructions by verifier, of those that are in use."""
    rows = VerifierPrompt.objects.filter(in_use=True, verifier__in=verifiers.names)
    return dict(rows.values_list("verifier", "text"))


def request_of(run: Run) -> dict[str, object]:
    """What started the run, in the words of the API: its kernel, its budget of now.

    Its random seed is left out, so that a repeat draws its own.
    """
    config = config_now(run)
    document: dict[str, Any] = codec.encode(config)
    verifiers = {k: v for k, v in document["verifiers"].items() if k != "prompts"}
    source = run.problem.get("seed_source", "")
    same = ("direction", "strategy", "name", "private", "enters_best")
    return {
        **{name: document[name] for name in (*_SAME, "parameters", "profile")},
        **{name: getattr(run, name) for name in same},
        "task": run.task_version.task.slug,
        "device": run.device_id,
        "models": [model.name for model in config.writers],
        "budget": codec.encode(budget_of(run)),
        "verifiers": verifiers,
        "seed_kernel": "own" if source.strip() else "none",
        "source": source,
        "entry": run.problem.get("seed_entry", ""),
        "files": run.problem.get("seed_files", {}),
    }

"""A run's settings as names and texts, to be compared with those of other runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpu_runner.data.solution import whole
from runs_app.models import Run
from runs_app.optimiser.selectors.runs import extensions
from runs_app.optimiser.selectors.settings import OWN_KERNEL, PARAMETERS, parameters_of, text

SEED = "random seed"
"""The setting in which repeats differ."""

_LISTS = {"temperatures": "temperatures"}
_PLAIN = {
    "max_tokens": "answer limit (tokens)",
    "profile": "profile",
    "concurrent_asks": "concurrent calls",
    "concurrent_evaluations": "concurrent evaluations",
}
_BUDGET = {
    "usd": "budget: USD",
    "tokens": "budget: tokens",
    "evaluations": "budget: evaluations",
    "wall_time_s": "budget: seconds",
}
_VERIFIERS = ("soft", "threshold", "survivors", "reflect")


def settings_of(runs: Sequence[Run]) -> list[dict[str, str]]:
    """Every setting of each run by its name for people, the random seed included; one query.

    Budget and parameters are those of now. One kernel has one name, whatever each run calls it.
    """
    latest, titles = extensions(run.pk for run in runs), _kernel_names(runs)
    return [_settings(run, latest.get(run.pk, {}), titles) for run in runs]


def _settings(run: Run, extension: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, str]:
    config: Mapping[str, Any] = run.config
    settings = {
        "strategy": run.strategy,
        "task version": str(run.task_version.number),
        "models": text(model["name"] for model in config.get("models", ())) or "none",
        "seed kernel": _seed_kernel(run, titles),
        SEED: str(run.seed),
    }
    settings |= {label: text(config[name]) for name, label in _PLAIN.items() if name in config}
    settings |= {label: text(config[name]) for name, label in _LISTS.items() if name in config}
    settings |= _verifiers(config.get("verifiers") or {})
    budget = extension.get("budget") or config.get("budget") or {}
    settings |= {label: text(budget.get(name), "no cap") for name, label in _BUDGET.items()}
    parameters = parameters_of(run, extension.get("parameters") or {})
    labels = {name: PARAMETERS.get(name, name) for name in sorted(parameters)}
    return settings | {label: text(parameters[name]) for name, label in labels.items()}


def _verifiers(config: Mapping[str, Any]) -> dict[str, str]:
    names = config.get("names") or ()
    settings = {"verifiers": text(names) or "off"}
    if not names:
        return settings
    settings |= {f"verifiers: {name}": text(config[name]) for name in _VERIFIERS if name in config}
    settings["verifiers: model"] = config.get("model") or "the writer's"
    prompts = config.get("prompts") or {}
    digests = {name: _digest(instructions) for name, instructions in prompts.items()}
    return settings | {"verifiers: prompts": text(digests) or "shipped"}


def _kernel_names(runs: Iterable[Run]) -> dict[str, str]:
    """A title for each seed kernel by its digest: what an agent called it, where one did."""
    titles: dict[str, str] = {}
    for run in sorted(runs, key=lambda run: run.problem.get("seed_title") == OWN_KERNEL):
        titles.setdefault(_seed_digest(run), run.problem.get("seed_title", ""))
    return titles


def _seed_kernel(run: Run, titles: Mapping[str, str]) -> str:
    digest = _seed_digest(run)
    return f"{titles.get(digest) or 'kernel'} ({digest})" if digest else "none"


def _seed_digest(run: Run) -> str:
    """Of the seed's texts, which a form may send with other line ends; empty without one."""
    source = run.problem.get("seed_source", "").replace("\r\n", "\n").strip()
    files = run.problem.get("seed_files", {})
    return _digest(whole({run.problem.get("seed_entry", ""): source, **files})) if source else ""


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:8]

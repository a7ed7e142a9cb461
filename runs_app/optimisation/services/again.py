"""The request of a run that exists, to be started once more with something changed."""

from __future__ import annotations

from typing import Any

from gpu_runner.data import codec
from runs_app.models import Run
from runs_app.optimisation.services.history import budget_of, config_now

_SAME = ("temperatures", "max_tokens", "concurrent_asks", "concurrent_evaluations", "ranks_best")


def request_of(run: Run) -> dict[str, Any]:
    """What started the run, in the words of the API: its kernel, its seed, its budget of now."""
    config = config_now(run)
    document: dict[str, Any] = codec.encode(config)
    verifiers = {k: v for k, v in document["verifiers"].items() if k != "prompts"}
    source = run.problem.get("seed_source", "")
    return {
        **{name: document[name] for name in _SAME},
        "task": run.task_version.task.slug,
        "device": run.device_id,
        "direction": run.direction,
        "strategy": run.strategy,
        "parameters": document["parameters"],
        "models": [model.name for model in config.writers],
        "budget": codec.encode(budget_of(run)),
        "verifiers": verifiers,
        "profile": document["profile"],
        "seed_kernel": "own" if source.strip() else "none",
        "source": source,
        "seed": run.seed,
        "name": run.name,
        "private": run.private,
        "enters_best": run.enters_best,
    }

"""Invented finished runs, language models and a tuning, to be compared on a test site.

`python -m tests.browser.invented_comparison` prints addresses; never on a site that people use.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.browser.invented_run import MODELS, Writer, World, make_run  # isort: skip - sets Django up

from django.contrib.auth.models import User

from runs_app.models import LanguageModel, Run, Tuning, VerifierPrompt
from tasks_app.models import TaskVersion
from tasks_app.selectors import published_tasks

_STRATEGIES = ("islands", "evolve", "autotune")
_REPEATS = 3
_START = "Read the kernel as the compiler does, from its first line to its last.\n" * 5


def finished_run(version: TaskVersion, strategy: str, repeat: int, user: User) -> Run:
    """A run with a history of its own, all of it invented."""
    run = make_run(version, 0, strategy, user=user, name=f"{strategy} {repeat}")
    run.events.all().delete()
    config = {**run.config, "seed": repeat, "profile": "full" if strategy == "evolve" else "none"}
    started = datetime.now(UTC) - timedelta(hours=2)
    Writer(run, started).write(World(random.Random(repeat * 31 + len(strategy)), strategy), 60)
    run.refresh_from_db()
    run.config, run.seed, run.status, run.resumed_at = config, repeat, "FINISHED", None
    run.ended_at, run.active_s, run.reason = datetime.now(UTC), 900.0 + repeat, "all is asked"
    run.save()
    return run


def tuning() -> Tuning:
    """Four generations of three prompts."""
    rng = random.Random(3)
    generations = [_generation(number, rng) for number in range(4)]
    made = Tuning.objects.create(
        verifier="compile",
        language_model=LanguageModel.objects.get(name=MODELS[0]),
        seed=0,
        examples=[
            {"evaluation": str(n), "task": f"t{n % 6}", "passes": n % 2 == 0, "held_out": n % 6 < 2}
            for n in range(50)
        ],
        generations=generations,
        usd=1.2345,
        tokens=412_345,
        created_at=datetime.now(UTC) - timedelta(minutes=40),
        ended_at=datetime.now(UTC),
    )
    VerifierPrompt.objects.create(
        verifier="compile", version=2, text=generations[3]["prompts"][0]["text"], in_use=True,
        tuning=made, created_at=datetime.now(UTC),
    )  # fmt: skip
    return made


def _generation(number: int, rng: random.Random) -> dict[str, Any]:
    def counts(right: int, of: int) -> dict[str, int]:
        return {"right": right, "of": of, "unread": rng.randint(0, 1)}

    prompts: list[dict[str, Any]] = [
        {
            "slot": slot,
            "parent": [number - 1, 0] if number else None,
            "text": f"{_START}Rule {number}.{slot}: check every include and every semicolon.\n",
            "problem": "",
            "train": counts(16 + 3 * number - 2 * slot, 30),
        }
        for slot in range(3 if number else 1)
    ]
    if number == 2:
        prompts[2] |= {"text": "", "train": None, "problem": "the answer holds no instructions"}
    held_out = counts(11 + 2 * min(number, 2), 20)
    return {
        "number": number, "best": 0, "train": prompts[0]["train"], "held_out": held_out,
        "usd": 0.31, "tokens": 100_000, "prompts": prompts,
    }  # fmt: skip


def main() -> None:
    """Add everything to the site of the environment."""
    task = published_tasks().filter(slug="softmax").first()
    assert task is not None
    assert task.current_version is not None
    user = User.objects.get(username="ada")
    runs = [
        finished_run(task.current_version, strategy, repeat, user)
        for strategy in _STRATEGIES
        for repeat in range(_REPEATS)
    ]
    LanguageModel.objects.filter(name=MODELS[0]).update(
        base_url="https://models.example:8443/v1", key_variable="INVENTED_KEY",
        price_in_usd=3.0, price_out_usd=15.0,
    )  # fmt: skip
    print("/runs/compare/?" + "&".join(f"run={run.pk}" for run in runs[::_REPEATS]))
    print(f"/verifiers/tunings/{tuning().pk}/")
    print(LanguageModel.objects.get(name=MODELS[0]).get_absolute_url())


if __name__ == "__main__":
    main()

"""What each part of `islands` brings: runs with it and without it, from the same seeds.

python -m tests.bench.own [--repeats 40] [--evaluations 40] [--part notes ...]
    [--base-url URL --api-name NAME --key-variable VARIABLE --task softmax --device cpu]
    [--most-evaluations 640 --minutes 90 --usd 5 --price-in 3 --price-out 15 --yes]

What it may spend is printed first. With an endpoint nothing is spent without `--yes`. A limit that
is reached ends it with the repeats that are whole.

Without an endpoint a simulated language model answers (`own_world` says how it behaves), and a
simulated device measures. With one, the real model writes kernels for the task, which this host
measures. Each repeat has another seed. A part's figure is the geometric mean of the ratios
"with / without" of the same seeds, with its 95 % interval: above 1 the part brings speed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_runner.data.formats import find_task
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.host.config import default_cache_folder
from runs_app.evolve.ablation import Interval, geometric_interval
from runs_app.evolve.config import Budget, RunConfig
from runs_app.evolve.history import History
from tests.bench.campaign import Campaign, problem_of
from tests.bench.endpoints import add_endpoint, check_endpoint, language_model
from tests.bench.evaluations import Entry, make_config, run_one
from tests.bench.limits import Purse, Spent, add_limits, check_limits
from tests.bench.own_world import own_world, source
from tests.bench.tables import heading, table
from tests.unit.runs_app.evolve.driving import a_config, a_problem, begin

COLUMNS = (
    *("left out", "speedup without", "with / without", "95 % interval", "tokens", "device time"),
    *("correct", "stopped"),
)

WHOLE = "nothing"  # is left out
PARTS: Mapping[str, Mapping[str, Any]] = {
    "islands": {"islands": 1},
    "diffs": {"diff": 0.0},
    "crossover": {"crossover": 0.0},
    "mending": {"mend": 0},
    "notes": {"notes": 0},
    "early stop": {"early_stop": False},
    "novelty": {"similarity": 1.0},
}
"""Part -> the parameters of a run without it."""


@dataclass(frozen=True)
class Ran:
    """What came of one run. device: what its evaluations took, in any unit."""

    speedup: float
    tokens: int
    device: float
    correct: float
    stopped: int


Run = Callable[[Mapping[str, Any], int], Ran]
"""A run with these parameters, from this seed."""


def ran(history: History, device: float) -> Ran:
    """The figures of a run that is over."""
    first, best = history.candidates[1].latency_ns, history.best
    time_ns = best.latency_ns if best else None
    measured = history.settled
    return Ran(
        speedup=first / time_ns if first and time_ns else 1.0,
        tokens=history.paid_tokens,
        device=device,
        correct=sum(c.is_correct for c in measured) / max(1, len(measured)),
        stopped=sum(c.verdict == "TOO_SLOW" for c in measured),
    )


def simulated(evaluations: int, purse: Purse | None = None) -> Run:
    """Runs in the simulated world, within the limits."""

    def run(parameters: Mapping[str, Any], seed: int) -> Ran:
        world = own_world(seed)
        config = a_config(
            seed=seed,
            parameters={"proposals": 4 * evaluations, "floor_stop": 0.0, **parameters},
            budget=purse.budget() if purse else Budget(evaluations=evaluations),
        )
        problem = a_problem(seed_source=source(""), floor_ns=None)
        history = begin(problem, config, world).go().history
        if purse:
            purse.pay(history)
        return ran(history, world.device_ns / 1e3)

    return run


def real(options: argparse.Namespace, purse: Purse) -> Run:
    """Runs that ask a real language model, and measure on this host, within the limits."""
    task, host = find_task(options.task), make_config(options.device, options.cache)
    seed_kernel = task.files[f"kernels/naive{host.kind.language.suffix}"]
    told = run_one(Entry("naive", task, seed_kernel), host, Mode.RANKED, None)[0]
    problem = problem_of(task, host, seed_kernel, "naive", told)
    spec, model = language_model(options)

    def run(parameters: Mapping[str, Any], seed: int) -> Ran:
        config = RunConfig(
            strategy="islands",
            seed=seed,
            parameters={"proposals": 4 * options.evaluations, **parameters},
            models=(spec,),
            budget=purse.budget(),
        )
        campaign = Campaign(task, problem, config, host, model)
        campaign.run(_say)
        purse.pay(campaign.history, is_cut=campaign.is_cut)
        stages = (s.duration_s for r in campaign.results.values() for s in r.stages)
        return ran(campaign.history, sum(stages))

    return run


def runs(run: Run, parts: Sequence[str], repeats: int) -> tuple[dict[str, list[Ran]], str]:
    """Runs of the whole and without each part, seed by seed; and why they ended early, if so."""
    found: dict[str, list[Ran]] = {name: [] for name in (WHOLE, *parts)}
    try:
        for seed in range(1, repeats + 1):
            for name, done in found.items():
                done.append(run(PARTS.get(name, {}), seed))
    except Spent as error:
        return found, str(error)
    return found, ""


def rows(found: Mapping[str, Sequence[Ran]]) -> Iterator[list[str]]:
    """A row for the whole, and one for each part that is left out, over the seeds that both have.

    None for what has no run.
    """
    whole = found[WHOLE]
    for name, without in found.items():
        if without:
            yield row(name, whole[: len(without)], without)


def row(name: str, whole: Sequence[Ran], without: Sequence[Ran]) -> list[str]:
    """One row; tokens and device time are those of the runs without the part."""
    ratios = [a.speedup / b.speedup for a, b in zip(whole, without, strict=True)]
    speed, brings = geometric_interval([b.speedup for b in without]), geometric_interval(ratios)
    assert speed is not None, "there is a repeat"
    assert brings is not None, "there is a repeat"
    count = len(without)
    return [
        name,
        f"{speed.mean:.2f}",
        "" if name == WHOLE else f"{brings.mean:.3f}",
        "" if name == WHOLE else interval(brings),
        f"{sum(b.tokens for b in without) / count / 1e3:.0f}k",
        f"{sum(b.device for b in without) / sum(a.device for a in whole):.2f}",
        f"{sum(b.correct for b in without) / count:.0%}",
        f"{sum(b.stopped for b in without) / count:.1f}",
    ]


def interval(found: Interval) -> str:
    """In words; one repeat has none."""
    return "one repeat" if found.method == "none" else f"{found.low:.3f} to {found.high:.3f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--part", nargs="*", choices=list(PARTS), default=list(PARTS))
    add_endpoint(parser)
    parser.add_argument("--task", default="softmax")
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CPU)
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    add_limits(parser)
    options = parser.parse_args()
    check_limits(parser, options)
    check_endpoint(parser, options)
    purse = Purse(
        runs=options.repeats * (1 + len(options.part)),
        evaluations=options.evaluations,
        most_evaluations=options.most_evaluations,
        minutes=options.minutes,
        usd=options.usd,
        say=_say,
    )
    _say(purse.plan() + ("" if options.base_url else ", simulated: nothing is paid"))
    if options.base_url and not options.yes:
        parser.error("--yes: nothing was spent; say that it may be")
    run = real(options, purse) if options.base_url else simulated(options.evaluations, purse)
    found, reason = runs(run, options.part, options.repeats)
    made = list(rows(found))
    if reason:
        _say(reason)
    if options.base_url:
        print(heading(make_config(options.device, options.cache)))
    print(table(COLUMNS, made))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""Our search of knobs beside a well-kept library's samplers, at equal evaluations.

python -m tests.bench.samplers [--repeats 40] [--evaluations 30 60] [--samplers ours tpe ...]
    [--landscapes smooth rugged]

Each repeat draws a landscape: a time for each of 2,000 combinations of five knobs, with noise of
2 %, and walls where nothing compiles. `smooth` has one bottom. `rugged` has values of two knobs
that suit each other or do not, in no order. Four combinations are measured at the same time. One
that was measured before costs nothing. The figure is the true time of what a sampler found
fastest over the best there is: the geometric mean, its 95 % interval, and how much faster ours is,
landscape by landscape. Optuna is in the extra `tuning`: pip install ".[tuning]".
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_runner.data.verdict import Verdict
from runs_app.evolve.ablation import geometric_interval
from runs_app.evolve.knobs import with_knobs
from tests.bench.tables import table
from tests.unit.runs_app.evolve.driving import World, a_config, a_problem, begin
from tests.unit.runs_app.evolve.worlds import KNOBS, Landscape, Mode, tunable, values_of

COLUMNS = (
    *("landscape", "evaluations", "sampler", "found / best", "95 % interval"),
    *("its time / ours", "95 % interval"),
)
AT_ONCE = 4
ASKS = 20  # for each evaluation, before a sampler that repeats itself is given up
NAMES = ("ours", "random", "tpe", "tpe ordered", "nsga2")

Values = dict[str, str]


class Rugged(Landscape):
    """As `Landscape`, and each pair of values of two knobs has a factor of its own."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        dice = random.Random(f"rugged {seed}")
        first, second = dice.sample(list(KNOBS), 2)
        self.names = first, second
        pairs = [(a, b) for a in KNOBS[first].split() for b in KNOBS[second].split()]
        self.suits = {pair: dice.uniform(0.7, 1.5) for pair in pairs}

    def time_ns(self, values: Values) -> float | None:
        """Without noise; None where the combination does not compile."""
        time_ns = super().time_ns(values)
        first, second = self.names
        return None if time_ns is None else time_ns * self.suits[values[first], values[second]]


LANDSCAPES: Mapping[str, Callable[[int], Landscape]] = {"smooth": Landscape, "rugged": Rugged}


def ours(land: Landscape, seed: int, evaluations: int) -> Values:
    """The strategy `autotune`, without its patience."""
    parameters = {"evaluations": evaluations, "patience": evaluations}
    config = a_config(
        "autotune", seed=seed, models=(), parameters=parameters, concurrent_evaluations=AT_ONCE
    )
    problem = a_problem(seed_source=tunable())
    history = begin(problem, config, World(judge=land.judge, seed=seed)).go().history
    return dict(history.best.knobs) if history.best else values_of(tunable())


def optunas(name: str, land: Landscape, seed: int, evaluations: int) -> Values:
    """A sampler of Optuna's, which begins with the kernel's own values, as ours does."""
    optuna: Any = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler_of(optuna, name, seed))
    study.enqueue_trial(_encoded(name, values_of(tunable())))
    known: dict[tuple[str, ...], float] = {}
    slowest, asks = 0.0, 0
    while len(known) < evaluations and asks < ASKS * evaluations:
        asked = [study.ask() for _ in range(AT_ONCE)]
        asks += AT_ONCE
        for trial in asked:
            values = _suggested(name, trial)
            key = tuple(values.values())
            if key not in known and len(known) < evaluations:
                result = land.judge(with_knobs(tunable(), values), Mode.QUICK)
                is_right = result.verdict is Verdict.CORRECT and result.latency_ns
                known[key] = result.latency_ns or 0.0 if is_right else float("inf")
                slowest = max(slowest, result.latency_ns or 0.0)
            # what does not compile counts as twice the slowest: samplers take no infinity
            found = known.get(key, float("inf"))
            study.tell(trial, found if found < float("inf") else 2 * slowest or 1e6)
    best = min(known, key=lambda key: known[key])
    return dict(zip(KNOBS, best, strict=True))


def sampler_of(optuna: Any, name: str, seed: int) -> Any:
    """By its name in the table."""
    samplers = optuna.samplers
    match name:
        case "random":
            return samplers.RandomSampler(seed=seed)
        case "nsga2":
            return samplers.NSGAIISampler(seed=seed, population_size=12)
        case _:
            return samplers.TPESampler(seed=seed, constant_liar=True)


def _is_ordered(name: str) -> bool:
    return name == "tpe ordered"


def _encoded(name: str, values: Values) -> dict[str, Any]:
    if not _is_ordered(name):
        return dict(values)
    return {knob: KNOBS[knob].split().index(value) for knob, value in values.items()}


def _suggested(name: str, trial: Any) -> Values:
    found = {}
    for knob, text in KNOBS.items():
        values = text.split()
        if _is_ordered(name):
            found[knob] = values[trial.suggest_int(knob, 0, len(values) - 1)]
        else:
            found[knob] = trial.suggest_categorical(knob, values)
    return found


def missed(name: str, land: Landscape, seed: int, evaluations: int) -> float:
    """The true time of what a sampler found, over the best that there is."""
    search = ours if name == "ours" else lambda *given: optunas(name, *given)
    time_ns = land.time_ns(search(land, seed, evaluations))
    return (time_ns or float("inf")) / land.best_ns()


def rows(kind: str, evaluations: int, names: Sequence[str], repeats: int) -> list[list[str]]:
    """A row for each sampler on the same landscapes."""
    make, found = LANDSCAPES[kind], {}
    for name in names:
        found[name] = [missed(name, make(seed), seed, evaluations) for seed in range(repeats)]
    return [
        [kind, str(evaluations), name, *_cells(values), *_cells(_ratios(values, found["ours"]))]
        for name, values in found.items()
    ]


def _ratios(values: Sequence[float], to: Sequence[float]) -> list[float]:
    return [value / other for value, other in zip(values, to, strict=True)]


def _cells(values: Sequence[float]) -> list[str]:
    found = geometric_interval(values)
    assert found is not None, "there is a repeat"
    return [f"{found.mean:.3f}", f"{found.low:.3f} to {found.high:.3f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--evaluations", type=int, nargs="*", default=[30, 60])
    parser.add_argument("--landscapes", nargs="*", choices=LANDSCAPES, default=list(LANDSCAPES))
    parser.add_argument("--samplers", nargs="*", choices=NAMES, default=list(NAMES))
    options = parser.parse_args()
    if importlib.util.find_spec("optuna") is None:
        parser.error('optuna is not installed: pip install ".[tuning]"')
    names = ["ours", *(name for name in options.samplers if name != "ours")]
    found = []
    for kind in options.landscapes:
        for evaluations in options.evaluations:
            found += rows(kind, evaluations, names, options.repeats)
            print(table(COLUMNS, found[-len(names) :]), flush=True)
    print(table(COLUMNS, found))


if __name__ == "__main__":
    main()

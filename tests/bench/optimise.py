"""Optimises built-in tasks on this host: `autotune`, and `evolve` with a scripted language model.

python -m tests.bench.optimise [--device cuda] [--task matrix_mul ...] [--strategy autotune ...]
    [--no-ranked]

The language model of `evolve` is a script behind a real HTTP server, asked by the real client. Its
first two answers are broken on purpose: one does not compile, the other adds 1 to what the naive
kernel stores last. Then come variants of the tunable kernel, and the good kernel. What is shown is
that the loop carries them, not that a language model wrote them. The row of a run is printed when
the run ends; the ranked evaluation of its best, which can take minutes, comes after that.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_runner.data.formats import find_task
from gpu_runner.data.numbers import duration_text
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from runs_app.optimiser.evolve import events
from runs_app.optimiser.evolve.commands import Ask, Role
from runs_app.optimiser.evolve.config import Budget, ModelSpec, RunConfig
from runs_app.optimiser.evolve.history import History
from runs_app.optimiser.evolve.knobs import find_knobs, with_knobs
from runs_app.optimiser.llm.client import complete
from runs_app.optimiser.llm.endpoint import Endpoint
from runs_app.optimiser.llm.errors import CallError
from tests.bench.campaign import Campaign, Model, problem_of
from tests.bench.evaluations import Entry, make_config, run_one
from tests.bench.tables import heading, table
from tests.scripted_endpoint import Answer, Asked, ScriptedEndpoint

COLUMNS = (
    "task", "strategy", "seed", "best", "x seed", "x naive", "evaluations", "correct", "minutes",
)  # fmt: skip
RANKED_COLUMNS = ("best, ranked", "x best baseline", "hidden, x eager")
TASKS = ("matrix_mul", "softmax", "rms_norm", "layernorm")
MODEL = "scripted"
_STORED = re.compile(r"\] = ([^;]+);")


def kernel(task: Task, kind: DeviceKind, name: str) -> str:
    """Source of a shipped kernel: naive, tunable or good."""
    return task.files[f"kernels/{name}{kind.language.suffix}"]


def proposals(task: Task, kind: DeviceKind, seed: int) -> Iterator[str]:
    """What the script answers with, one after the other; the first two are broken on purpose."""
    rng = random.Random(seed)
    naive, tunable = kernel(task, kind, "naive"), kernel(task, kind, "tunable")
    yield f"#error broken on purpose\n{naive}"
    yield from wrong(naive)
    knobs = find_knobs(tunable)
    for place in range(1000):
        if place == 5:
            yield kernel(task, kind, "good")
        yield with_knobs(tunable, {knob.name: rng.choice(knob.values) for knob in knobs})


def wrong(naive: str) -> list[str]:
    """The kernel with 1 added to what it stores last; none where no such place is found."""
    stores = list(_STORED.finditer(naive))
    if not stores:
        return []
    start, end = stores[-1].span(1)
    return [f"{naive[:start]}({naive[start:end]}) + 1{naive[end:]}"]


def asking(endpoint: Endpoint) -> Model:
    """Asks a language model through the real client, and calls it free."""

    def ask(number: int, command: Ask) -> events.Answer:
        began = time.monotonic()
        try:
            done = complete(
                endpoint,
                [{"role": m.role, "content": m.content} for m in command.prompt.messages],
                temperature=command.temperature,
                max_tokens=command.max_tokens or 8192,
                seed=number,
                call_id=f"{command.role}.{number}",
            )
        except CallError as error:
            failed = events.Failed(ask=number, reason=error.reason)
            return events.Answer(event=failed, text=error.text)
        answered = events.Answered(
            ask=number,
            tokens_in=done.usage.tokens_in,
            tokens_out=done.usage.tokens_out,
            cost_usd=0.0,
            latency_s=time.monotonic() - began,
        )
        return events.Answer(event=answered, text=done.text, finish_reason=done.finish_reason)

    return ask


@contextmanager
def scripted_model(task: Task, kind: DeviceKind, seed: int) -> Iterator[Model]:
    """A language model behind a real server, asked through the real client."""
    sources = proposals(task, kind, seed)

    def script(asked: Asked) -> Answer:
        role = asked.call_id.partition(".")[0]
        if role == Role.RECOMMEND:
            return Answer("1. Tile for the cache. 2. Load vectors. 3. Unroll the inner loop.")
        if not Role(role).writes_code:
            return Answer("FINAL VERIFICATION ANSWER: True")
        return Answer(f"NAME: variant\nTHOUGHT: another shape\nCODE:\n```cpp\n{next(sources)}\n```")

    with ScriptedEndpoint(script) as server:
        endpoint = Endpoint(name=MODEL, api_name=MODEL, base_url=server.base_url)

        yield asking(endpoint)


def config_of(strategy: str, seed: int, evaluations: int) -> RunConfig:
    """The run's configuration."""
    parameters = {"generations": 3, "proposals": 6} if strategy == "evolve" else {}
    return RunConfig(
        strategy=strategy,
        seed=seed,
        parameters=parameters,
        models=(ModelSpec(name=MODEL),) if strategy == "evolve" else (),
        budget=Budget(evaluations=evaluations),
        concurrent_asks=4,
        concurrent_evaluations=6,
    )


def optimise(
    task: Task, strategy: str, host: SupervisorConfig, options: argparse.Namespace
) -> list[str]:
    """One run, its row printed when it ends; then the ranked evaluation of its best, if wanted."""
    began = time.monotonic()
    name = "naive" if strategy == "evolve" else "tunable"
    seed = kernel(task, host.kind, name)
    config = config_of(strategy, options.seed, options.evaluations)
    with scripted_model(task, host.kind, options.seed) as model:
        campaign = Campaign(task, problem_of(task, host, seed, name), config, host, model)
        campaign.run(lambda line: print(f"{task.name} {strategy} {line}", flush=True))
    took_s = time.monotonic() - began
    history = campaign.history
    print(f"{task.name} {strategy}: {history.finished.reason if history.finished else ''}")
    row = [task.name, strategy, *found(history, naive_ns(task, host)), f"{took_s / 60:.1f}"]
    print(table(COLUMNS, [row]), flush=True)
    if history.best is None:
        return row + (["-"] * len(RANKED_COLUMNS) if options.ranked else [])
    source = campaign.texts.sources[history.best.number]
    print(source if options.show else "", flush=True)
    return row + (ranked(task, source, host) if options.ranked else [])


def naive_ns(task: Task, host: SupervisorConfig) -> float | None:
    """Time of the naive kernel, in nanoseconds."""
    entry = Entry("naive", task, kernel(task, host.kind, "naive"))
    return run_one(entry, host, Mode.QUICK, None)[0].latency_ns


def found(history: History, naive: float | None) -> list[str]:
    """What a run found, from the column of its seed on; `naive` in nanoseconds."""
    first, best = history.candidates[1], history.best
    counts = [str(history.told.begun), str(len(history.correct()))]
    seed = duration_text(first.latency_ns) if first.latency_ns else first.verdict
    if best is None or best.latency_ns is None:
        return [seed, "none correct", "-", "-", *counts]
    times = (first.latency_ns, naive)
    ratios = [f"{time_ns / best.latency_ns:.2f}" if time_ns else "-" for time_ns in times]
    return [seed, duration_text(best.latency_ns), *ratios, *counts]


def ranked(task: Task, source: str, host: SupervisorConfig) -> list[str]:
    """The ranked columns of a run's best kernel."""
    result, _ = run_one(Entry("best", task, source), host, Mode.RANKED, None)
    print(f"ranked: {result.verdict} {result.reason}", flush=True)
    return [
        duration_text(result.latency_ns) if result.latency_ns else f"{result.verdict}",
        f"{result.speedups['best']:.2f}" if "best" in result.speedups else "-",
        f"{result.unlisted_speedups['eager']:.2f}" if "eager" in result.unlisted_speedups else "-",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CUDA)
    parser.add_argument("--task", nargs="*", default=list(TASKS))
    parser.add_argument("--strategy", nargs="*", default=["autotune", "evolve"])
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print each best kernel")
    parser.add_argument("--no-ranked", dest="ranked", action="store_false")
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    options = parser.parse_args()
    host = make_config(options.device, options.cache)
    rows = [
        optimise(find_task(name), strategy, host, options)
        for name in options.task
        for strategy in options.strategy
    ]
    print(heading(host))
    print(table(COLUMNS + RANKED_COLUMNS if options.ranked else COLUMNS, rows))


if __name__ == "__main__":
    main()

"""The papers' comparison: each strategy on tasks with published kernels, beside those kernels.

python -m tests.bench.papers --base-url URL --api-name NAME [--key-variable VARIABLE]
    [--published FOLDER] [--task softmax ...] [--strategy evolve ...] [--repeats 1]
    [--evaluations 40] [--device cuda] [--out FOLDER]
    [--most-evaluations 800 --minutes 600 --usd 50 --price-in 3 --price-out 15] --yes

What it may spend is printed first, and nothing is spent without `--yes`. A run's fastest kernel is
ranked, and so is FOLDER/TASK.cu (or .cpp), a published kernel that was made one of our task. The
ratio is the published kernel's time over the run's. A kernel that was refused says so in its row.
With `--out`, each best kernel is kept there. A limit ends it with the rows that are whole.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_runner.data.codec import DataError
from gpu_runner.data.durations import duration
from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.formats import find_task
from gpu_runner.data.task import Task
from gpu_runner.data.verdict import DeviceKind, Mode, Verdict
from gpu_runner.supervisor.host.config import SupervisorConfig, default_cache_folder
from runs_app.evolve.config import ModelSpec, RunConfig
from tests.bench.campaign import Campaign, Model, problem_of
from tests.bench.endpoints import add_endpoint, check_endpoint, language_model
from tests.bench.evaluations import Entry, make_config, run_one
from tests.bench.limits import Purse, Spent, add_limits, check_limits
from tests.bench.tables import heading, table

TASKS = ("softmax", "rms_norm", "matrix_mul", "layernorm", "llama_rmsnorm")
STRATEGIES = ("evolve", "cudamaster", "fsr", "islands")
COLUMNS = (
    *("task", "strategy", "seed", "seed kernel", "best, ranked", "published", "published / best"),
    *("evaluations", "correct", "tokens", "minutes"),
)


@dataclass(frozen=True)
class Bench:
    """What all runs share; by task the ranked results of its published and its naive kernel."""

    host: SupervisorConfig
    spec: ModelSpec
    model: Model
    purse: Purse
    published: dict[str, EvaluationResult]
    naive: dict[str, EvaluationResult]
    out: Path | None

    def row(self, task: Task, strategy: str, seed: int) -> list[str]:
        """One run, and its best kernel ranked; raises `Spent` where a limit ended the run."""
        began = time.monotonic()
        first, told = naive_kernel(task, self.host), self.naive.get(task.name)
        config = RunConfig(
            strategy=strategy, seed=seed, models=(self.spec,), budget=self.purse.budget()
        )
        problem = problem_of(task, self.host, first, "naive" if first else "", told)
        campaign = Campaign(task, problem, config, self.host, self.model)
        campaign.run(lambda line: _say(f"{task.name} {strategy} {line}"))
        self.purse.pay(campaign.history, is_cut=campaign.is_cut)
        history = campaign.history
        best = None
        if history.best is not None:
            source = campaign.texts.sources[history.best.number]
            best = run_one(Entry("best", task, source), self.host, Mode.RANKED, None)[0]
            self._keep(f"{task.name}-{strategy}-{seed}", source)
        beside = self.published.get(task.name)
        start = told.latency_ns if told is not None else None
        return [
            *(task.name, strategy, str(seed), duration(start) if start else "-"),
            *(_time(best), _time(beside), _ratio(beside, best)),
            *(str(history.evaluations()), str(len(history.correct()))),
            *(f"{history.paid_tokens / 1e3:.0f}k", f"{(time.monotonic() - began) / 60:.1f}"),
        ]

    def _keep(self, name: str, source: str) -> None:
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / f"{name}{self.host.kind.language.suffix}").write_text(source)


def naive_kernel(task: Task, host: SupervisorConfig) -> str:
    """Its source; empty where there is none, and runs begin with a translation."""
    return task.files.get(f"kernels/naive{host.kind.language.suffix}", "")


def naive_results(
    tasks: list[Task], host: SupervisorConfig
) -> Iterator[tuple[str, EvaluationResult]]:
    """Each naive kernel, ranked: from it prompts know hardware, baselines and limits."""
    for task in tasks:
        if source := naive_kernel(task, host):
            yield task.name, run_one(Entry("naive", task, source), host, Mode.RANKED, None)[0]


def _time(result: EvaluationResult | None) -> str:
    """A ranked time, or why there is none."""
    if result is None:
        return "-"
    right = result.verdict is Verdict.CORRECT and result.latency_ns
    return duration(right) if right else f"{result.verdict}"


def _ratio(beside: EvaluationResult | None, best: EvaluationResult | None) -> str:
    """How much faster than the published kernel; both must be right."""
    times = [r.latency_ns for r in (beside, best) if r and r.verdict is Verdict.CORRECT]
    theirs, ours = times if len(times) == 2 else (None, None)
    return f"{theirs / ours:.2f}" if theirs and ours else "-"


def published_results(
    folder: Path | None, tasks: list[Task], host: SupervisorConfig
) -> Iterator[tuple[str, EvaluationResult]]:
    """Each published kernel that the folder has, ranked by the same protocol."""
    for task in tasks if folder else ():
        path = Path(folder or "") / f"{task.name}{host.kind.language.suffix}"
        if path.exists():
            entry = Entry("published", task, path.read_text())
            yield task.name, run_one(entry, host, Mode.RANKED, None)[0]
        else:
            _say(f"{path} is not there: {task.name} has no published kernel beside it")


def parse_arguments() -> argparse.Namespace:
    """What the command line asks for; ends with 2 where it is wrong, or nothing may be spent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_endpoint(parser)
    parser.add_argument("--published", type=Path, metavar="FOLDER", help="of TASK.cu or TASK.cpp")
    parser.add_argument("--task", nargs="+", default=list(TASKS))
    parser.add_argument("--strategy", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--repeats", type=int, default=1, help="runs of each, from other seeds")
    parser.add_argument("--evaluations", type=int, default=40, help="of one run")
    parser.add_argument("--device", type=DeviceKind, default=DeviceKind.CUDA)
    parser.add_argument("--out", type=Path, help="folder for the best kernels")
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    add_limits(parser)
    options = parser.parse_args()
    check_limits(parser, options)
    check_endpoint(parser, options)
    if not options.base_url:
        parser.error("--base-url: name the endpoint of the language model")
    if options.published and not options.published.is_dir():
        parser.error(f"--published: {options.published} is no folder")
    try:
        options.tasks = [find_task(name) for name in options.task]
    except DataError as error:
        parser.error(f"--task: {error.reason}")
    options.purse = Purse(
        runs=len(options.tasks) * len(options.strategy) * options.repeats,
        evaluations=options.evaluations,
        most_evaluations=options.most_evaluations,
        minutes=options.minutes,
        usd=options.usd,
        say=_say,
    )
    _say(options.purse.plan())
    if not options.yes:
        parser.error("--yes: nothing was spent; say that it may be")
    return options


def main() -> None:
    """Print the table."""
    options = parse_arguments()
    host = make_config(options.device, options.cache)
    spec, model = language_model(options)
    beside = dict(published_results(options.published, options.tasks, host))
    naive = dict(naive_results(options.tasks, host))
    bench = Bench(host, spec, model, options.purse, beside, naive, options.out)
    rows: list[list[str]] = []
    try:
        for seed in range(1, options.repeats + 1):
            for task in options.tasks:
                for strategy in options.strategy:
                    rows.append(bench.row(task, strategy, seed))
                    _say(" | ".join(rows[-1]))
    except Spent as error:
        _say(str(error))
    print(heading(host))
    print(table(COLUMNS, rows))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

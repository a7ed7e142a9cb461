"""Do the bounds hold? Honest families and shipped CPU kernels on many draws of every task.

python -m tests.bench.families [--draws 1000] [--only REGEX] [--seed 1] [--out families.jsonl]
    [--minutes 60] [--workers 1] [--without-kernels]

A draw is a call of a workload of the CPU, listed or hidden, with its own values or, on a listed
one, with others that a ranked evaluation would use there. Every family of `engine.honest`, and
every shipped kernel, is tried on it. A line of JSON for each batch of draws is added to the file at
once, and those that are there count: stop it when you like, and go on later. They do not know when
a family was changed: begin a new file then. Exit status 1 if anything was refused.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import random
import re
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gpu_runner.data.formats import catalog_specifications
from gpu_runner.data.protocol import MOST_OWN_ERROR
from gpu_runner.data.task import Values, Workload
from gpu_runner.data.verdict import Abi, DeviceKind, Direction, Language, Mode
from gpu_runner.engine.problem.problem import map_tensors, outputs_of
from gpu_runner.engine.runner.subject import load_extension
from gpu_runner.engine.soundness.mutants import Call, Outputs
from gpu_runner.engine.soundness.soundness import honest_kernels, honest_result
from gpu_runner.supervisor.build.build import build_solution
from gpu_runner.supervisor.device.toolchain import TORCH_MODULE
from gpu_runner.supervisor.host.config import default_cache_folder
from tests.bench.evaluations import Entry, make_config, request
from tests.bench.honest import read_lines
from tests.bench.spread import spread, workers
from tests.bench.tables import heading, table
from tests.unit.catalog.calling import written_by
from tests.unit.catalog.judging import Case, folder, problem, task

BATCH = 25  # draws of a line
COLUMNS = ("task", "direction", "draws", "ways", "refused", "closest", "of its bound")
REFERENCE = "reference"

Way = Callable[[Call], Outputs | None]
"""Gives the outputs on a call; None where there is nothing of the kind in the task."""


def ways() -> dict[str, Way]:
    """The reference in the task's own dtype, and every honest family, by name."""
    found: dict[str, Way] = {REFERENCE: lambda call: call.eager}
    for name, family in honest_kernels().items():
        found[name] = lambda call, family=family: honest_result(family, call)  # type: ignore[misc]
    return found


def shipped(name: str, direction: Direction, cache: Path) -> dict[str, Way]:
    """The task's own C++ kernels, built as a runner builds them, by the name of their file."""
    found: dict[str, Way] = {}
    for kernel in task(name).kernels:
        if kernel.language is Language.CPP and kernel.direction is direction:
            source = (folder(name) / kernel.path).read_text()
            entry = Entry(f"{name}-{kernel.agent}", task(name), source, direction)
            config = make_config(DeviceKind.CPU, cache)
            built = build_solution(request(entry, config, Mode.COMPILE), config)
            if built.library is None:
                raise SystemExit(f"{kernel.path} of {name} does not build:\n{built.report.log}")
            found[kernel.path] = _kernel(name, built.library)
    return found


def _kernel(name: str, path: Path) -> Way:
    if task(name).abi is Abi.TORCH:
        # A name of its own, or pybind11 would give the module that it made of another file.
        module = load_extension(path, f"{path.parent.name}.{TORCH_MODULE}")
        return lambda call: outputs_of(getattr(module, call.direction)(*copies(call)))
    library = ctypes.CDLL(str(path))

    def run(call: Call) -> Outputs:
        case = Case(name, call.workload, call.direction)
        return tuple(inner for _, inner in written_by(case, library, call.drawn, call.eager))

    return run


def copies(call: Call) -> tuple[Any, ...]:
    """The arguments of a call, which a kernel may not change."""
    arguments: tuple[Any, ...] = map_tensors(torch.clone, call.drawn.arguments)
    return arguments


class Places:
    """Workloads of a ranked evaluation on a CPU, also with the other values that it would use."""

    def __init__(self, name: str, direction: Direction) -> None:
        """Which other values a workload supports is asked when one comes up."""
        self._name, self._direction = name, direction
        own = task(name).workloads_for(DeviceKind.CPU, direction, hidden=True)
        self._all = [(workload, workload.values) for workload in own]
        for workload in own:
            if not workload.hidden:
                others = task(name).other_values(workload, DeviceKind.CPU, direction)
                near = (Values.NEAR,) if workload.values is Values.DRAWN else ()
                self._all += [(workload, values) for values in (*others, *near)]
        self._supported: dict[tuple[str, Values], bool] = {}

    def call(self, rng: random.Random) -> Call:
        """A call on one of them; those that an evaluation would leave out are drawn again."""
        while True:
            workload, values = rng.choice(self._all)
            place = dataclasses.replace(workload, values=values)
            if values is workload.values or self._is_borne(place, rng):
                return self._drawn(place, rng)

    def _is_borne(self, place: Workload, rng: random.Random) -> bool:
        """As `supervisor.oracle.distributions` asks it of an oracle."""
        key = (place.name, place.values)
        if key not in self._supported:
            try:
                call = self._drawn(place, rng)
                failed, scaled = call.judge(call.eager)
                self._supported[key] = not failed and scaled <= MOST_OWN_ERROR
            except Exception:  # the reference makes no sense of such values
                self._supported[key] = False
        return self._supported[key]

    def _drawn(self, place: Workload, rng: random.Random) -> Call:
        base = problem(self._name)
        return Call(base, place, self._direction, rng.getrandbits(62), "cpu")


@dataclasses.dataclass
class Found:
    """What became of one way of computing."""

    draws: int = 0
    refused: int = 0
    largest: float = 0.0
    where: str = ""

    def add(self, workload: Workload, failed: bool, scaled: float, why: str) -> None:
        """Add a draw."""
        self.draws += 1
        self.refused += failed
        if scaled > self.largest:
            self.largest = scaled
            self.where = f"{workload.name} ({workload.values}) {why}".strip()

    def merge(self, other: Found) -> None:
        """Add those of another batch."""
        self.draws += other.draws
        self.refused += other.refused
        if other.largest > self.largest:
            self.largest, self.where = other.largest, other.where


def try_all(call: Call, chosen: Mapping[str, Way], found: dict[str, Found]) -> None:
    """Every way on one call."""
    for name, way in chosen.items():
        outputs = way(call)
        if outputs is not None:
            found[name].add(call.workload, *call.explain(outputs))


@dataclasses.dataclass(frozen=True)
class Batch:
    """Some draws of a task in one direction."""

    name: str
    direction: Direction
    draws: int
    seed: str


@dataclasses.dataclass(frozen=True)
class Work:
    """Makes the draws of a batch; one of these goes to every worker."""

    cache: Path
    kernels: bool

    def __call__(self, batch: Batch, _: int) -> dict[str, Any]:
        """A line for the file."""
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")  # sparse tensors are in beta
        rng, began = random.Random(batch.seed), time.monotonic()
        chosen = ways()
        if self.kernels:
            chosen |= shipped(batch.name, batch.direction, self.cache)
        found: dict[str, Found] = defaultdict(Found)
        places = Places(batch.name, batch.direction)
        for _ in range(batch.draws):
            try_all(places.call(rng), chosen, found)
        results = {name: dataclasses.asdict(each) for name, each in found.items()}
        seconds = time.monotonic() - began
        return {**dataclasses.asdict(batch), "seconds": seconds, "found": results}


def batches(
    names: Sequence[str], draws: int, seed: int, lines: Sequence[dict[str, Any]]
) -> Iterator[Batch]:
    """What is left to do, all tasks in turn; a batch's seed says which one it is."""
    done = {line["seed"] for line in lines}
    for number in range(-(-draws // BATCH)):
        for name in names:
            for direction in task(name).directions:
                words = f"{seed} {name} {direction} {number} {task(name).digest()[:16]}"
                if words not in done:
                    yield Batch(name, direction, min(BATCH, draws - number * BATCH), words)


def present(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines that are of the present version of their task."""
    digests = {line["name"]: task(line["name"]).digest()[:16] for line in lines}
    return [line for line in lines if line["seed"].endswith(digests[line["name"]])]


def merged(lines: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Found]]:
    """What is known of each task and direction, by the name of the way."""
    found: dict[tuple[str, str], dict[str, Found]] = {}
    for line in lines:
        ways_of = found.setdefault((line["name"], line["direction"]), defaultdict(Found))
        for way, each in line["found"].items():
            ways_of[way].merge(Found(**each))
    return found


def summary(lines: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A row for each task and direction."""
    rows = []
    for (name, direction), found in sorted(merged(lines).items()):
        refused = {way: each.refused for way, each in found.items() if each.refused}
        closest = max(found, key=lambda way: found[way].largest)
        words = ", ".join(f"{way} {count}" for way, count in refused.items()) or "0"
        share = f"{found[closest].largest:.2f}"
        draws = str(max(each.draws for each in found.values()))
        rows.append([name, direction, draws, str(len(found)), words, closest, share])
    return rows


def main() -> int:
    """Draw, print the table and what was refused, return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", default="", help="regular expression over names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no batch after")
    parser.add_argument("--workers", type=workers, default=1)
    parser.add_argument("--without-kernels", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("families.jsonl"))
    parser.add_argument("--cache", type=Path, default=default_cache_folder())
    options = parser.parse_args()
    lines = present(read_lines(options.out))
    names = [name for name in sorted(catalog_specifications()) if re.search(options.only, name)]
    left = list(batches(names, options.draws, options.seed, lines))
    until = time.monotonic() + 60 * options.minutes
    work = Work(options.cache, not options.without_kernels)
    with options.out.open("a") as file:
        for line in spread(work, left, devices=range(options.workers), until=until):
            lines.append(line)
            print(json.dumps(line), file=file, flush=True)
    print(heading(make_config(DeviceKind.CPU, options.cache)))
    print(table(COLUMNS, summary(lines)))
    bad = [
        (*key, way, each)
        for key, ways_of in merged(lines).items()
        for way, each in ways_of.items()
        if each.refused
    ]
    for name, direction, way, each in bad:
        print(f"{name} {direction}, {way}: {each.refused} of {each.draws}; {each.where}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())

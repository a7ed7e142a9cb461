"""Many kernels through the client's evaluator, as a search hands them in; is any of them lost?

python -m tests.bench.evaluator [--device cpu|cuda] [--count 1000] [--in-flight 32] [--share 0.3]

Starts a site. Threads hand in kernels for vector_add in `quick`, each for the first time: the
shipped ones and, for that share, hostile ones of the red team that a verdict must stop. A hostile
kernel is caught if its reward is 0; some are only caught in `ranked`. Exit status 1 if any kernel
has no reward, or an honest one has 0.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from gpu_runner.data.formats import catalog_folder
from gpu_runner.data.verdict import DeviceKind, Mode
from gpu_runner.supervisor.host.config import SupervisorConfig
from kbench_client.config import Account
from kbench_client.evaluators.judge import Judge, Judged, Wanted
from kbench_client.exits import Stop
from kbench_client.site import Site as Client
from tests.adversarial.kernels import load_kernels
from tests.bench.site import ALONE, Kernel, Site
from tests.bench.tables import heading, percentile, table

TASK = "vector_add"
COLUMNS = ("kernels", "judged", "no reward", "reward 0", "p50 s", "p95 s")
_LIMIT_S = 3600.0  # chosen: none is given up because others are slow


@dataclass(frozen=True)
class Handed:
    """A kernel that was handed in, and what came of it."""

    name: str
    is_hostile: bool
    seconds: float
    judged: Judged | None
    trouble: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it was lost, or judged as it should not be."""
        return self.reward is None or (self.reward > 0) is self.is_hostile

    @property
    def reward(self) -> float | None:
        """None if it was lost."""
        return None if self.judged is None else self.judged.reward


def main() -> None:
    """Print the table, and each kernel that was lost or misjudged."""
    options = _options()
    kind = DeviceKind(options.device)
    kernels = honest(kind), hostile(kind)
    with closing(Site(kind, "--no-demo", settings=ALONE)) as site:
        site.open()
        site.verdict(site.submit(kernels[0][0], Mode.RANKED))  # measures the baselines
        began = time.monotonic()
        handed = hand_in(site, kernels, options)
        lasted_s = time.monotonic() - began
    print(heading(SupervisorConfig(kind=kind)))
    print(table(COLUMNS, [row("honest", handed, False), row("hostile", handed, True)]))
    print(f"{len(handed)} in {lasted_s:.0f} s, {options.in_flight} in flight")
    wrong = [one for one in handed if one.is_wrong]
    for one in wrong:
        said = one.trouble or (one.judged and f"{one.judged.verdict}: {one.judged.reason}")
        print(f"{one.name}: {said}")
    sys.exit(any(one.reward is None or not one.is_hostile for one in wrong))


def honest(kind: DeviceKind) -> list[Kernel]:
    """The shipped kernels in the device's own language."""
    suffix = ".cu" if kind is DeviceKind.CUDA else ".cpp"
    folder = catalog_folder() / TASK / "kernels"
    names = (f"{name}{suffix}" for name in ("naive", "good", "tunable"))
    return [Kernel(name, TASK, (folder / name).read_text()) for name in names]


def hostile(kind: DeviceKind) -> list[Kernel]:
    """Kernels of the red team that gain nothing by being right."""
    return [
        Kernel(each.name, TASK, each.source)
        for each in load_kernels(kind)
        if each.task.name == TASK
        and each.path.suffix in (".cu", ".cpp")
        and each.mode is not Mode.AUDIT
        and each.stops
        and all(stop.verdict is not None for stop in each.stops)
    ]


def hand_in(
    site: Site, kernels: tuple[Sequence[Kernel], Sequence[Kernel]], options: argparse.Namespace
) -> list[Handed]:
    """Hand all in, so many at a time, in an order that is drawn."""
    client = Client(Account(url=site.installation.url, token=site.token))
    judge = Judge(client, Wanted(task=TASK, device=site.device), limit_s=_LIMIT_S)

    def one(is_hostile: bool) -> Handed:
        kernel = random.choice(kernels[is_hostile])
        since = time.monotonic()
        try:
            [judged] = judge.judge([f"// {secrets.token_hex(8)}\n{kernel.source}"])
        except Stop as stop:
            return Handed(kernel.name, is_hostile, 0.0, None, stop.reason)
        return Handed(kernel.name, is_hostile, time.monotonic() - since, judged)

    drawn = [random.random() < options.share for _ in range(options.count)]
    with ThreadPoolExecutor(options.in_flight) as pool:
        return list(pool.map(one, drawn))


def row(name: str, handed: Sequence[Handed], is_hostile: bool) -> list[str]:
    """The table's row of the honest or the hostile ones."""
    ours = [one for one in handed if one.is_hostile is is_hostile]
    judged = [one for one in ours if one.reward is not None]
    zero = [one for one in judged if one.reward == 0]
    seconds = [one.seconds for one in judged] or [float("nan")]
    counts = [len(ours), len(judged), len(ours) - len(judged), len(zero)]
    times = [f"{percentile(seconds, share):.1f}" for share in (0.5, 0.95)]
    return [name, *map(str, counts), *times]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--share", type=float, default=0.3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
